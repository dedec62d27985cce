import Foundation

/// One step of `records/modify`.
package struct RecordOperation: Codable, Hashable, Sendable {
  package var operationType: RecordOperationType
  package var record: RecordDictionary
  /// Shapes only the reply; overrides the request's.
  package var desiredKeys: [String]?
  /// Shapes only the reply; overrides the request's.
  package var numbersAsStrings: Bool?

  package init(
    operationType: RecordOperationType,
    record: RecordDictionary,
    desiredKeys: [String]? = nil,
    numbersAsStrings: Bool? = nil
  ) {
    self.operationType = operationType
    self.record = record
    self.desiredKeys = desiredKeys
    self.numbersAsStrings = numbersAsStrings
  }
}
