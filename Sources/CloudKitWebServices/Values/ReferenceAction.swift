/// What the deletion of a reference's target means for the record that holds the reference.
package enum ReferenceAction: String, Codable, Hashable, Sendable, CaseIterable {
  case none = "NONE"
  case deleteSelf = "DELETE_SELF"
  case validate = "VALIDATE"
}
