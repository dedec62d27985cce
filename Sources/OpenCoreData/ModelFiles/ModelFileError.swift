import Foundation

/// The error of a model file that can't be read or is inconsistent.
package struct ModelFileError: Error, Sendable, Hashable, CustomStringConvertible, LocalizedError,
  CustomNSError
{
  /// The kind of the error.
  package enum Reason: Sendable, Hashable {
    /// The file does not exist or can't be opened.
    case unreadable
    /// The file does not have the expected format.
    case malformed
    /// The file names an entity, property or parent that does not exist, or contradicts itself.
    case inconsistent
    /// The file's format is known but not supported.
    case unsupported
  }

  package var reason: Reason
  /// The file's path.
  package var file: String
  package var line: Int?
  /// The element, as written in the file.
  package var element: String?
  /// A description of what was found.
  package var found: String
  /// A description of what was expected.
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
  /// Reads an archive of models or mappings; its errors name the file.
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
