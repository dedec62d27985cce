#if !canImport(os)
/// A log message; its text and values are discarded.
public struct OSLogMessage: ExpressibleByStringInterpolation, Sendable {
  /// Takes a text.
  public init(stringLiteral value: String) {}

  /// Takes a text with values.
  public init(stringInterpolation: StringInterpolation) {}

  /// Takes the parts of a text with the options of Apple's logs.
  public struct StringInterpolation: StringInterpolationProtocol {
    /// Begins a text.
    public init(literalCapacity: Int, interpolationCount: Int) {}

    /// Takes a literal part.
    public mutating func appendLiteral(_ literal: String) {}

    /// Takes a value.
    public mutating func appendInterpolation<Value>(
      _ value: @autoclosure () -> Value,
      align: OSLogStringAlignment = .none,
      privacy: OSLogPrivacy = .auto
    ) {}

    /// Takes an integer.
    public mutating func appendInterpolation<Value: FixedWidthInteger>(
      _ value: @autoclosure () -> Value,
      format: OSLogIntegerFormatting,
      align: OSLogStringAlignment = .none,
      privacy: OSLogPrivacy = .auto
    ) {}

    /// Takes a floating-point number.
    public mutating func appendInterpolation<Value: BinaryFloatingPoint>(
      _ value: @autoclosure () -> Value,
      format: OSLogFloatFormatting,
      align: OSLogStringAlignment = .none,
      privacy: OSLogPrivacy = .auto
    ) {}
  }
}

/// Who may read a value of a message.
public struct OSLogPrivacy: Hashable, Sendable {
  /// Public for numbers, private for texts and objects.
  public static let auto = OSLogPrivacy()
  /// Everywhere.
  public static let `public` = OSLogPrivacy()
  /// Only in a debugger.
  public static let `private` = OSLogPrivacy()
  /// Nowhere.
  public static let sensitive = OSLogPrivacy()

  /// The text in place of a value that may not be read.
  public enum Mask: Hashable, Sendable {
    /// A hash of the value.
    case hash
    /// Nothing.
    case none
  }

  /// Only in a debugger; elsewhere the mask is shown.
  public static func `private`(mask: Mask) -> OSLogPrivacy { .private }
  /// Nowhere; the mask is shown.
  public static func sensitive(mask: Mask) -> OSLogPrivacy { .sensitive }
  /// As `auto`; others see the mask.
  public static func auto(mask: Mask) -> OSLogPrivacy { .auto }
}

/// The width of a value in a message.
public struct OSLogStringAlignment: Hashable, Sendable {
  /// As wide as the value.
  public static let none = OSLogStringAlignment()
  /// Spaces before the value.
  public static func right(columns: @autoclosure () -> Int) -> OSLogStringAlignment { .none }
  /// Spaces after the value.
  public static func left(columns: @autoclosure () -> Int) -> OSLogStringAlignment { .none }
}

/// The digits of an integer in a message.
public struct OSLogIntegerFormatting: Hashable, Sendable {
  /// Ten digits.
  public static let decimal = OSLogIntegerFormatting()
  /// Sixteen digits.
  public static let hex = OSLogIntegerFormatting()
  /// Eight digits.
  public static let octal = OSLogIntegerFormatting()
}

/// The digits of a floating-point number in a message.
public struct OSLogFloatFormatting: Hashable, Sendable {
  /// With six fractional digits.
  public static let fixed = OSLogFloatFormatting()
  /// With an exponent.
  public static let exponential = OSLogFloatFormatting()
  /// As short as it can be.
  public static let hybrid = OSLogFloatFormatting()

  /// With a number of fractional digits.
  public static func fixed(precision: @autoclosure () -> Int) -> OSLogFloatFormatting { .fixed }
}
#endif
