package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.Serializable;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.zone.ZoneRules;
import java.util.List;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;

/** RP-4: the step that contains a value, counted as in `steps.py`. Tests compare the two. */
final class RangeSteps implements Serializable {
  private static final long MICROS = 1_000_000L;
  private static final long MICROS_OF_HOUR = 3_600 * MICROS;
  private static final long MICROS_OF_DAY = 24 * MICROS_OF_HOUR;

  /** In days, microseconds or plain numbers; in months if `inMonths`. */
  private final long width;
  private final boolean inMonths;
  private final boolean ofDates;
  private final long origin;
  /** The time zone if steps follow local time; else null. */
  private final ZoneId zone;

  /** {"count": 2, "unit": "day", "origin": 0, "zone": "UTC"}; a null unit means plain numbers. */
  RangeSteps(JsonNode steps, DataType type) {
    String unit = steps.get("unit").asText();
    long count = steps.get("count").asLong();
    this.ofDates = type instanceof DateType;
    this.inMonths = unit.equals("month") || unit.equals("year");
    this.width = count * switch (unit) {
      case "hour" -> MICROS_OF_HOUR;
      case "day" -> ofDates ? 1 : MICROS_OF_DAY;
      case "week" -> ofDates ? 7 : 7 * MICROS_OF_DAY;
      case "year" -> 12;
      default -> 1;
    };
    this.origin = steps.get("origin").asLong();
    String zone = steps.get("zone").asText();
    this.zone = zone.equals("UTC") || unit.equals("hour") ? null : ZoneId.of(zone);
  }

  long ordinal(long value) {
    if (zone == null) {
      return inMonths ? Math.floorDiv(month(value) - month(origin), width) : Math.floorDiv(value - origin, width);
    }
    long wall = toWall(value);
    long wallOrigin = toWall(origin);
    long counted = inMonths
        ? Math.floorDiv(month(wall) - month(wallOrigin), width) : Math.floorDiv(wall - wallOrigin, width);
    // If clocks are set back across midnight, the local time passes through the end of a day twice.
    if (value < start(counted)) {
      counted--;
    }
    return value >= start(counted + 1) ? counted + 1 : counted;
  }

  /** The first value of a step that follows local time. */
  private long start(long ordinal) {
    long wallOrigin = toWall(origin);
    return fromWall(inMonths ? ofMonth(month(wallOrigin) + ordinal * width) : wallOrigin + ordinal * width);
  }

  private long month(long value) {
    LocalDate date = LocalDate.ofEpochDay(ofDates ? value : Math.floorDiv(value, MICROS_OF_DAY));
    return (date.getYear() - 1970L) * 12 + date.getMonthValue() - 1;
  }

  private static long ofMonth(long month) {
    int year = Math.toIntExact(1970 + Math.floorDiv(month, 12));
    return LocalDate.of(year, (int) Math.floorMod(month, 12L) + 1, 1).toEpochDay() * MICROS_OF_DAY;
  }

  private long toWall(long micros) {
    Instant instant = Instant.ofEpochSecond(Math.floorDiv(micros, MICROS));
    return micros + zone.getRules().getOffset(instant).getTotalSeconds() * MICROS;
  }

  /** The instant of a local time. If the local time occurs twice, the earlier instant; if it is skipped, the instant of the transition. */
  private long fromWall(long wall) {
    LocalDateTime shown = LocalDateTime.ofEpochSecond(Math.floorDiv(wall, MICROS), 0, ZoneOffset.UTC);
    ZoneRules rules = zone.getRules();
    List<ZoneOffset> offsets = rules.getValidOffsets(shown);
    return offsets.isEmpty() ? rules.getTransition(shown).toEpochSecond() * MICROS
        : wall - offsets.get(0).getTotalSeconds() * MICROS;
  }
}
