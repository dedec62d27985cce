/// The three-way merge of one object: property by property, against the last copy that both sides
/// agreed on.
///
/// If both sides changed a property, this device's value wins, and is exported next: the last
/// exporter wins a property, as with Apple, but no edit of another property is lost with it.
package struct PropertyMerge: Hashable, Sendable {
  /// The properties that take the server's value.
  package var fromServer: Set<String> = []
  /// The properties that keep this store's value and have to be exported.
  package var stillPending: Set<String> = []
  /// The properties that both sides changed, to different values.
  package var conflicting: Set<String> = []

  /// Merges all properties that have fields.
  ///
  /// `pending` are the properties with edits that the server has not confirmed; `base` is the last
  /// copy that both sides agreed on, nil where there was none. `doubtful` are those of the pending properties of
  /// which the server may have taken an earlier value of this device: one that was set back is edited.
  package init(
    properties: some Sequence<String>,
    pending: Set<String>,
    doubtful: Set<String> = [],
    base: FieldBag?,
    server: FieldBag,
    local: FieldBag
  ) {
    for property in properties {
      let isSame = local.agrees(with: server, on: property)
      guard !isSame else { continue }
      guard pending.contains(property),
        doubtful.contains(property) || isEdited(property, base, server, local)
      else {
        fromServer.insert(property)
        continue
      }
      stillPending.insert(property)
      if let base, !base.agrees(with: server, on: property) { conflicting.insert(property) }
    }
  }

  private func isEdited(
    _ property: String,
    _ base: FieldBag?,
    _ server: FieldBag,
    _ local: FieldBag
  ) -> Bool {
    // A property that was edited and set back to the agreed value has no edit.
    if let base { return !base.agrees(with: local, on: property) }
    // Without a base, a value wins over no value, and this device's value over the server's.
    return local.content(of: property) != nil
  }
}
