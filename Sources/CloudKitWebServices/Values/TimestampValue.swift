import Foundation

/// A date: the wire's milliseconds, and the exact date where they do not represent it.
///
/// CloudKit's web services have whole milliseconds. A `Date` is finer, and one that is saved to a record is equal to
/// the one that another device reads: the member `secondsSince2001` of a field has what the milliseconds leave out.
/// It is an extension, sent to the clients that ask for extensions.
package struct TimestampValue: Hashable, Sendable {
  /// Milliseconds since 1970.
  package let milliseconds: Int64
  /// The seconds since 2001 of a date that is no whole number of milliseconds.
  package let secondsSince2001: Double?

  package init(milliseconds: Int64) {
    self.milliseconds = milliseconds
    secondsSince2001 = nil
  }

  package init(_ date: Date) {
    milliseconds = date.wireMilliseconds
    let seconds = date.timeIntervalSinceReferenceDate
    secondsSince2001 =
      seconds.isFinite && Date(wireMilliseconds: milliseconds) != date ? seconds : nil
  }

  /// A date as a client sends it; an exact date of other milliseconds is left out, because a client that does not
  /// know it has changed the milliseconds beside it.
  package init(milliseconds: Int64, secondsSince2001: Double?) {
    let exact = secondsSince2001.map { TimestampValue(Date(timeIntervalSinceReferenceDate: $0)) }
    self =
      exact?.milliseconds == milliseconds
      ? exact ?? TimestampValue(milliseconds: milliseconds)
      : TimestampValue(milliseconds: milliseconds)
  }

  package var date: Date {
    secondsSince2001.map { Date(timeIntervalSinceReferenceDate: $0) }
      ?? Date(wireMilliseconds: milliseconds)
  }
}

extension TimestampValue: ExpressibleByIntegerLiteral {
  package init(integerLiteral milliseconds: Int64) { self.init(milliseconds: milliseconds) }
}

extension FieldContent {
  package var hasExactDates: Bool { secondsSince2001 != nil }

  package var withoutExactDates: FieldContent {
    switch self {
    case .timestamp(let value): .timestamp(TimestampValue(milliseconds: value.milliseconds))
    case .timestampList(let values):
      .timestampList(values.map { TimestampValue(milliseconds: $0.milliseconds) })
    default: self
    }
  }

  /// The exact dates of dates that whole milliseconds do not represent; nil if there are none.
  var secondsSince2001: ExactDates? {
    switch self {
    case .timestamp(let value): value.secondsSince2001.map { .one($0) }
    case .timestampList(let values) where values.contains { $0.secondsSince2001 != nil }:
      .list(values.map(\.secondsSince2001))
    default: nil
    }
  }

  /// The value with the exact dates that its field has beside it.
  package func with(_ exact: ExactDates) -> FieldContent {
    switch (self, exact) {
    case (.timestamp(let value), .one(let seconds)):
      .timestamp(TimestampValue(milliseconds: value.milliseconds, secondsSince2001: seconds))
    case (.timestampList(let values), .list(let seconds)) where values.count == seconds.count:
      .timestampList(
        zip(values, seconds).map {
          TimestampValue(milliseconds: $0.milliseconds, secondsSince2001: $1)
        }
      )
    default: self
    }
  }
}

/// The member `secondsSince2001` of a field: a number, or a list with null for whole milliseconds.
package enum ExactDates: Hashable, Codable, Sendable {
  case one(Double)
  case list([Double?])

  package init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    do {
      self = .one(try container.decode(Double.self))
    } catch {
      self = .list(try container.decode([Double?].self))
    }
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .one(let seconds): try container.encode(seconds)
    case .list(let seconds): try container.encode(seconds)
    }
  }
}
