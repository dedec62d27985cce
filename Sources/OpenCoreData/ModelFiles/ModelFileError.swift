import Foundation

/// A model file cannot be read, or says something that makes no sense.
package struct ModelFileError: Error, Sendable, Hashable, CustomStringConvertible, LocalizedError,
  CustomNSError
{
  /// What kind of trouble it is.
  package enum Reason: Sendable, Hashable {
    /// Nothing is there, or it cannot be opened.
    case unreadable
    /// It is not of the form that was expected.
    case malformed
    /// It names an entity, property or parent that does not exist, or contradicts itself.
    case inconsistent
    /// It is of a kind that is known and not supported.
    case unsupported
  }

  package var reason: Reason
  /// The file's path.
  package var file: String
  package var line: Int?
  /// The element, as the file spells it.
  package var element: String?
  /// What was found.
  package var found: String
  /// What was expected instead.
  package var expected: String

  package init(
    _ reason: Reason,
    file: String,
    line: Int? = nil,
    element: String? = nil,
    found: String,
    expected: String
  ) {
    self.reason = reason
    self.file = file
    self.line = line
    self.element = element
    self.found = found
    self.expected = expected
  }

  package var description: String {
    var place = file.isEmpty ? "model" : file
    if let line { place += ":\(line)" }
    if let element { place += ": \(element)" }
    return "\(place): \(found); expected \(expected)."
  }

  package var errorDescription: String? { description }

  package static var errorDomain: String { "NSCocoaErrorDomain" }

  /// `NSFileReadNoSuchFileError`, `NSFileReadCorruptFileError` or `NSFileReadUnknownError`.
  package var errorCode: Int {
    switch reason {
    case .unreadable: 260
    case .malformed, .inconsistent: 259
    case .unsupported: 256
    }
  }

  package var errorUserInfo: [String: Any] {
    [
      NSLocalizedDescriptionKey: description,
      NSLocalizedFailureReasonErrorKey: found,
      NSFilePathErrorKey: file,
    ]
  }
}

extension ModelFileError {
  /// Reads an archive of models or mappings, telling what is damaged in it of which file.
  static func naming<Result>(_ file: String, _ read: () throws -> Result) throws -> Result {
    do {
      return try read()
    } catch let error as BinaryPropertyList.DamageError {
      throw ModelFileError(
        .malformed,
        file: file,
        element: "byte \(error.offset)",
        found: error.found,
        expected: error.expected
      )
    } catch let error as KeyedArchive.DamageError {
      throw ModelFileError(.malformed, file: file, found: error.found, expected: error.expected)
    }
  }
}
