/// What happens to the record that holds a reference when the reference's target is deleted.
package enum ReferenceAction: String, Codable, Hashable, Sendable, CaseIterable {
  case none = "NONE"
  case deleteSelf = "DELETE_SELF"
  case validate = "VALIDATE"
}
