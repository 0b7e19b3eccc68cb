package tableformat.spark;

import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Statistics;
import org.apache.spark.sql.execution.command.RunnableCommand;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;
import scala.Enumeration;

/** A command without children: what Scala mixes into a command of its own. */
abstract class CommandPlan extends LogicalPlan implements RunnableCommand {
  private final String text;
  private Seq<Enumeration.Value> nodePatterns;

  /** `text` is the statement, as plans show it. */
  CommandPlan(String text) {
    this.text = text;
    Command.$init$(this);
  }

  @Override public int productArity() {
    return 1;
  }

  @Override public Object productElement(int place) {
    return text;
  }

  @Override public boolean canEqual(Object other) {
    return other == this;
  }

  @Override public abstract Seq<Attribute> output();

  @Override public AttributeSet producedAttributes() {
    return outputSet();
  }

  @Override public Statistics stats() {
    return RunnableCommand.super.stats();
  }

  @Override public Seq<LogicalPlan> children() {
    return Scala.seq();
  }

  @Override public LogicalPlan withNewChildrenInternal(IndexedSeq<LogicalPlan> children) {
    return this;
  }

  /** Nothing of it changes. */
  @Override public LogicalPlan clone() {
    return this;
  }

  /** Spark 3.5 copies plans where the session has cached any, by a constructor that takes what `productElement` gives. */
  @Override public LogicalPlan makeCopy(Object[] elements) {
    return this;
  }

  @Override public Seq<Enumeration.Value> nodePatterns() {
    return nodePatterns;
  }

  @Override public void org$apache$spark$sql$catalyst$plans$logical$Command$_setter_$nodePatterns_$eq(
      Seq<Enumeration.Value> patterns) {
    nodePatterns = patterns;
  }
}
