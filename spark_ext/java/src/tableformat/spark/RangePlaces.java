package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.Serializable;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import java.util.stream.StreamSupport;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import tableformat.spark.RangeCut.RangeColumn;

/** Range partitions in the form that tasks use: which rows can be written (RP-5), and which of them can share a file (RP-7). */
final class RangePlaces implements Serializable {
  /** The place of rows whose files are separated by the partition spec, and of rows with a null. */
  static final Place ANY = new Place(0, 0);

  private final RangeColumn[] columns;
  /** The ends of the existing ranges, sorted; null if every row is accepted. */
  private final RangeCut[] taken;
  /** The borders between files, sorted; null if the partition spec already separates the files. */
  private final RangeCut[] borders;
  private final RangeSteps steps;
  /** Decides by a first column of whole numbers, dates or times without creating an object for each row; else null. */
  private final LeadingNumbers takenNumbers;
  private final LeadingNumbers borderNumbers;
  /** The existing strings, if all ranges are single strings of one column (list partitions); else null. */
  private final Set<UTF8String> takenTexts;
  /** The number of ends below the previous row, because rows usually come in runs. Each task has its own instance. */
  private transient int lastBelow;

  /** A partition, a gap or a missing step, as the number of borders below it and its step. */
  record Place(int below, long step) {}

  /** `ranges` is the plan from `range_plan.py`; `fields` are the columns of a row. */
  RangePlaces(JsonNode ranges, StructType fields) {
    this.columns = StreamSupport.stream(ranges.get("columns").spliterator(), false)
        .map(column -> column(column, fields)).toArray(RangeColumn[]::new);
    this.taken = cuts(ranges.get("taken"));
    this.borders = cuts(ranges.get("borders"));
    this.steps = ranges.get("steps").isNull() ? null : new RangeSteps(ranges.get("steps"), columns[0].type());
    this.takenNumbers = columns[0].isNumber() && taken != null ? LeadingNumbers.of(taken) : null;
    this.takenTexts = columns.length == 1 && columns[0].isText() && taken != null ? singleTexts(taken) : null;
    this.borderNumbers = columns[0].isNumber() && borders != null ? LeadingNumbers.of(borders) : null;
  }

  /** For rows that consist of the plan, as a string, and the range columns in order. */
  static RangePlaces ofArguments(String ranges, DataType[] types) {
    JsonNode plan = Json.parse(ranges);
    StructType fields = new StructType().add("", types[0]);
    for (int i = 1; i < types.length; i++) {
      fields = fields.add(plan.get("columns").get(i - 1).get("name").asText(), types[i]);
    }
    return new RangePlaces(plan, fields);
  }

  private static RangeColumn column(JsonNode column, StructType fields) {
    int ordinal = fields.fieldIndex(column.get("name").asText());
    return new RangeColumn(ordinal, fields.apply(ordinal).dataType(), column.get("uuid").asBoolean());
  }

  private RangeCut[] cuts(JsonNode cuts) {
    return cuts.isNull() ? null : StreamSupport.stream(cuts.spliterator(), false)
        .map(cut -> RangeCut.of(cut, columns)).toArray(RangeCut[]::new);
  }

  /** The strings, if the ends are pairs of a cut before and a cut after the same string; else null. */
  private static Set<UTF8String> singleTexts(RangeCut[] ends) {
    Set<UTF8String> texts = new HashSet<>();
    for (int i = 0; i < ends.length; i += 2) {
      boolean isSingle = i + 1 < ends.length && ends[i].values().length == 1 && !ends[i].after() && ends[i + 1].after()
          && Arrays.equals(ends[i].values(), ends[i + 1].values());
      if (!isSingle) {
        return null;
      }
      texts.add((UTF8String) ends[i].values()[0]);
    }
    return texts;
  }

  int[] ordinals() {
    return Arrays.stream(columns).mapToInt(RangeColumn::ordinal).toArray();
  }

  /** RP-5: whether the row lies in an existing range. No range contains a null. */
  boolean takes(InternalRow row) {
    if (taken == null) {
      return true;
    }
    if (hasNull(row)) {
      return false;
    }
    if (takenTexts != null) {
      return takenTexts.contains(row.getUTF8String(columns[0].ordinal()));
    }
    if (takenNumbers != null) {
      int below = takenNumbers.below(columns[0].number(row));
      if (below != LeadingNumbers.UNDECIDED) {
        return below % 2 == 1;
      }
    }
    Object[] values = values(row);
    if (!RangeCut.isAt(lastBelow, taken, values)) {
      lastBelow = RangeCut.below(taken, values);
    }
    return lastBelow % 2 == 1;
  }

  /** RP-7: rows with different places are written to different files. */
  Place place(InternalRow row) {
    if (borders == null || hasNull(row)) {
      return ANY;
    }
    if (borderNumbers != null) {
      long number = columns[0].number(row);
      int below = borderNumbers.below(number);
      if (below != LeadingNumbers.UNDECIDED) {
        return new Place(below, steps == null ? 0 : steps.ordinal(number));
      }
    }
    Object[] values = values(row);
    return new Place(RangeCut.below(borders, values), steps == null ? 0 : steps.ordinal((Long) values[0]));
  }

  private boolean hasNull(InternalRow row) {
    for (RangeColumn column : columns) {
      if (row.isNullAt(column.ordinal())) {
        return true;
      }
    }
    return false;
  }

  private Object[] values(InternalRow row) {
    Object[] values = new Object[columns.length];
    for (int i = 0; i < values.length; i++) {
      RangeColumn column = columns[i];
      values[i] = column.comparable(row.get(column.ordinal(), column.type()));
    }
    return values;
  }
}
