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

/** A command without children. It has the methods that Scala mixes into Spark's own commands. */
abstract class CommandPlan extends LogicalPlan implements RunnableCommand {
  private final String text;
  private Seq<Enumeration.Value> nodePatterns;

  /** `text` is the statement, which plans display. */
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

  /** The command is immutable, so it is its own copy. */
  @Override public LogicalPlan clone() {
    return this;
  }

  /** If the session has cached plans, Spark 3.5 copies plans with a constructor that takes the elements of `productElement`. */
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
