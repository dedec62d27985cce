/// The effect of deleting a reference's target on the record that has the reference.
package enum ReferenceAction: String, Codable, Hashable, Sendable, CaseIterable {
  case none = "NONE"
  case deleteSelf = "DELETE_SELF"
  case validate = "VALIDATE"
}
