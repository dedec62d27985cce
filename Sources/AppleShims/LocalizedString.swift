#if !canImport(Darwin)
import Foundation

extension String {
  /// A text in the user's language, or the text itself where no table of the bundle has it.
  ///
  /// ```swift
  /// let title = String(localized: "Notes", bundle: .main, comment: "The title of the list")
  /// ```
  ///
  /// Differs from Foundation on Apple's platforms: a text with interpolations is looked up with its values in it, so that
  /// only tables with the whole text translate it.
  public init(
    localized keyAndValue: String,
    table: String? = nil,
    bundle: Bundle? = nil,
    comment: StaticString? = nil
  ) {
    self = (bundle ?? .main).localizedString(forKey: keyAndValue, value: keyAndValue, table: table)
  }

  /// The text of a key in the user's language, or a default where no table of the bundle has it.
  public init(
    localized key: StaticString,
    defaultValue: String,
    table: String? = nil,
    bundle: Bundle? = nil,
    comment: StaticString? = nil
  ) {
    self = (bundle ?? .main).localizedString(
      forKey: "\(key)",
      value: defaultValue,
      table: table
    )
  }
}
#endif
