package tableformat.spark;

import java.util.Arrays;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.connector.expressions.UserDefinedScalarFunc;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The partition transforms as functions of the catalog: `lake.system.bucket(16, id)`, `lake.system.days(ts)`. Spark clusters and sorts rows
 * by them before a write. They are implemented in the JVM, because a call to Python for every row would cost more than the write. Python's
 * writers use PyIceberg's transforms. Spark finds the methods named `invoke` by their parameter types.
 */
final class Transforms {
  static final String[] NAMES = {"bucket", "truncate", "years", "months", "days", "hours"};

  private static final String CANONICAL = "tableformat.";

  private Transforms() {}

  /** Null if no function of that name exists. */
  static UnboundFunction named(String name) {
    if (name.equals(RangePlaceFunction.NAME)) {
      return new RangePlaceFunction();
    }
    if (name.equals(IsNumberFunction.NAME)) {
      return new IsNumberFunction();
    }
    return Arrays.asList(NAMES).contains(name) ? new Unbound(name) : null;
  }

  /** Whether the call is of a function of this catalog, rather than one of the same name in another catalog. */
  static boolean isOurs(UserDefinedScalarFunc call) {
    return Arrays.asList(NAMES).contains(call.name()) && call.canonicalName().startsWith(CANONICAL + call.name());
  }

  private record Unbound(String name) implements UnboundFunction {
    @Override public String description() {
      return name.equals("bucket") || name.equals("truncate")
          ? name + "(width, column): the partition transform with this name"
          : name + "(column): the partition transform with this name";
    }

    @Override public BoundFunction bind(StructType input) {
      boolean hasWidth = name.equals("bucket") || name.equals("truncate");
      if (input.size() != (hasWidth ? 2 : 1)) {
        throw new UnsupportedOperationException(description() + " requires " + (hasWidth ? "two arguments" : "one argument"));
      }
      DataType source = input.apply(input.size() - 1).dataType();
      if (hasWidth && !isWhole(input.apply(0).dataType())) {
        throw new UnsupportedOperationException(
            description() + " requires a whole number first, not " + input.apply(0).dataType().sql());
      }
      BoundFunction bound = switch (name) {
        case "bucket" -> isBucketed(source) ? new Bucket(widened(source)) : null;
        case "truncate" -> isTruncated(source) ? new Truncate(source) : null;
        default -> isDateLike(source) && !(name.equals("hours") && source instanceof DateType)
            ? new DatePart(name, source) : null;
      };
      if (bound == null) {
        throw new UnsupportedOperationException(name + " is not defined for " + source.sql());
      }
      return bound;
    }

    private static boolean isDateLike(DataType type) {
      return type instanceof DateType || type instanceof TimestampType || type instanceof TimestampNTZType;
    }

    private static boolean isWhole(DataType type) {
      return type instanceof IntegerType || type instanceof ShortType || type instanceof ByteType;
    }

    /** Tables do not have integers of less than 32 bits. */
    private static DataType widened(DataType type) {
      return isWhole(type) ? DataTypes.IntegerType : type;
    }

    private static boolean isTruncated(DataType type) {
      return isWhole(type) || type instanceof LongType || type instanceof DecimalType
          || type instanceof StringType || type instanceof BinaryType;
    }

    private static boolean isBucketed(DataType type) {
      return isTruncated(type) || isDateLike(type);
    }
  }

  /** Public, like all classes below, because Spark calls it from generated code. */
  public static final class Bucket implements Reducing<Integer> {
    private final DataType source;

    Bucket(DataType source) {
      this.source = source;
    }

    @Override public String name() {
      return "bucket";
    }

    @Override public String canonicalName() {
      return CANONICAL + "bucket(" + source.catalogString() + ")";
    }

    @Override public DataType[] inputTypes() {
      return new DataType[] {DataTypes.IntegerType, source};
    }

    @Override public DataType resultType() {
      return DataTypes.IntegerType;
    }

    public Integer invoke(int count, int value) {
      return PartitionTransform.bucket(count, value);
    }

    public Integer invoke(int count, long value) {
      return PartitionTransform.bucket(count, value);
    }

    public Integer invoke(int count, UTF8String value) {
      return value == null ? null : PartitionTransform.bucket(count, value);
    }

    public Integer invoke(int count, byte[] value) {
      return value == null ? null : PartitionTransform.bucket(count, value);
    }

    public Integer invoke(int count, Decimal value) {
      return value == null ? null : PartitionTransform.bucket(count, value);
    }
  }

  public static final class Truncate implements ScalarFunction<Object> {
    private final DataType source;

    Truncate(DataType source) {
      this.source = source;
    }

    @Override public String name() {
      return "truncate";
    }

    @Override public String canonicalName() {
      return CANONICAL + "truncate(" + source.catalogString() + ")";
    }

    @Override public DataType[] inputTypes() {
      return new DataType[] {DataTypes.IntegerType, source};
    }

    @Override public DataType resultType() {
      return source;
    }

    public byte invoke(int width, byte value) {
      return (byte) PartitionTransform.truncate(width, value);
    }

    public short invoke(int width, short value) {
      return (short) PartitionTransform.truncate(width, value);
    }

    public int invoke(int width, int value) {
      return (int) PartitionTransform.truncate(width, value);
    }

    public long invoke(int width, long value) {
      return PartitionTransform.truncate(width, value);
    }

    public UTF8String invoke(int width, UTF8String value) {
      return value == null ? null : PartitionTransform.truncate(width, value);
    }

    public byte[] invoke(int width, byte[] value) {
      return value == null ? null : PartitionTransform.truncate(width, value);
    }

    public Decimal invoke(int width, Decimal value) {
      return value == null ? null : PartitionTransform.truncate(width, value);
    }
  }

  public static final class DatePart implements Reducing<Integer> {
    private final String name;
    private final DataType source;

    DatePart(String name, DataType source) {
      this.name = name;
      this.source = source;
    }

    @Override public String name() {
      return name;
    }

    @Override public String canonicalName() {
      return CANONICAL + name + "(" + source.catalogString() + ")";
    }

    @Override public DataType[] inputTypes() {
      return new DataType[] {source};
    }

    /** A day is a date, as in Iceberg. Years, months and hours are numbers since 1970. */
    @Override public DataType resultType() {
      return name.equals("days") ? DataTypes.DateType : DataTypes.IntegerType;
    }

    public int invoke(int day) {
      return part(PartitionTransform.Unit.DAY, day);
    }

    public int invoke(long micros) {
      return part(PartitionTransform.Unit.MICROSECOND, micros);
    }

    private int part(PartitionTransform.Unit unit, long value) {
      return switch (name) {
        case "years" -> PartitionTransform.years(unit, value);
        case "months" -> PartitionTransform.months(unit, value);
        case "days" -> PartitionTransform.days(unit, value);
        default -> PartitionTransform.hours(value);
      };
    }
  }
}
