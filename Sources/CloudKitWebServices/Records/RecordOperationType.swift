/// The seven operation types of `records/modify`.
package enum RecordOperationType: String, Codable, Hashable, Sendable, CaseIterable {
  case create
  case update
  case forceUpdate
  case replace
  case forceReplace
  case delete
  case forceDelete

  package var isDelete: Bool { self == .delete || self == .forceDelete }
}
