package tableformat.spark;

import java.io.Serializable;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.time.LocalDate;
import java.util.Arrays;
import java.util.UUID;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.hash.Murmur3_x86_32;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The partition transforms of Iceberg's specification (appendix B for the hashes), for Spark's internal values.
 *
 * <p>Dates are days since 1970 and timestamps microseconds since 1970. Times of day are microseconds.
 */
enum PartitionTransform {
  IDENTITY,
  BUCKET,
  TRUNCATE,
  YEARS,
  MONTHS,
  DAYS,
  HOURS,
  VOID;

  private static final long MICROS_OF_HOUR = 3_600_000_000L;
  private static final long MICROS_OF_DAY = 24 * MICROS_OF_HOUR;

  /** The unit of a date or time source. */
  enum Unit implements Serializable {
    DAY,
    MICROSECOND
  }

  // -- bucket

  static int bucket(int count, long value) {
    return bucketOf(count, Murmur3_x86_32.hashLong(value, 0));
  }

  static int bucket(int count, byte[] value) {
    return bucketOf(count, Murmur3_x86_32.hashUnsafeBytes2(value, Platform.BYTE_ARRAY_OFFSET, value.length, 0));
  }

  static int bucket(int count, UTF8String value) {
    return bucketOf(
        count, Murmur3_x86_32.hashUnsafeBytes2(value.getBaseObject(), value.getBaseOffset(), value.numBytes(), 0));
  }

  static int bucket(int count, Decimal value) {
    return bucket(count, value.toJavaBigDecimal().unscaledValue().toByteArray());
  }

  static int bucket(int count, UUID value) {
    return bucket(count, bytes(value));
  }

  private static int bucketOf(int count, int hash) {
    if (count < 1) {
      throw new IllegalArgumentException("bucket(" + count + ", ...): the number of buckets must be 1 or more");
    }
    return (hash & Integer.MAX_VALUE) % count;
  }

  static byte[] bytes(UUID value) {
    return ByteBuffer.allocate(16).putLong(value.getMostSignificantBits()).putLong(value.getLeastSignificantBits())
        .array();
  }

  // -- truncate

  static long truncate(int width, long value) {
    return value - Math.floorMod(value, (long) width);
  }

  static UTF8String truncate(int codePoints, UTF8String value) {
    return value.substring(0, codePoints);
  }

  static byte[] truncate(int bytes, byte[] value) {
    return value.length <= bytes ? value : Arrays.copyOf(value, bytes);
  }

  static Decimal truncate(int width, Decimal value) {
    BigInteger unscaled = value.toJavaBigDecimal().unscaledValue();
    BigInteger truncated = unscaled.subtract(unscaled.mod(BigInteger.valueOf(width)));
    return Decimal.apply(new BigDecimal(truncated, value.scale()), value.precision(), value.scale());
  }

  // -- parts of dates

  static int years(Unit unit, long value) {
    return LocalDate.ofEpochDay(days(unit, value)).getYear() - 1970;
  }

  static int months(Unit unit, long value) {
    LocalDate date = LocalDate.ofEpochDay(days(unit, value));
    return (date.getYear() - 1970) * 12 + date.getMonthValue() - 1;
  }

  static int days(Unit unit, long value) {
    return Math.toIntExact(unit == Unit.DAY ? value : Math.floorDiv(value, MICROS_OF_DAY));
  }

  static int hours(long micros) {
    return Math.toIntExact(Math.floorDiv(micros, MICROS_OF_HOUR));
  }
}
