/// A conflict of an update that was sent before and whose reply never came.
///
/// A server that no longer has the reply refuses the update for the tag that the update itself gave
/// the record, or for the edit of another device. What is replaced then is kept for recovery: it
/// is not known which of the two it was.
package struct RepeatedUpdate: Hashable, Sendable {
  /// The fields of the record if the server executed the update as it was sent.
  package var sent: FieldBag
  /// The sent properties, where the server's copy shows that the update was saved: it has one of the sent
  /// values and none of those before.
  ///
  /// Other differences are then edits made after the update. One sent value alone may be another device's edit
  /// to the same value.
  package var taken: Set<String> = []

  /// Compares the server's copy with what was sent; `base` is the last copy that both sides agreed on,
  /// and `properties` are those in the batch.
  package init(
    _ operation: CloudOperation,
    properties: Set<String>,
    since base: FieldBag,
    server: FieldBag,
    _ entity: EntityMapping
  ) {
    sent = ChangedFields(set: operation.set.values, removed: operation.removed).applied(to: base)
    let (before, after) = (entity.reading(base).fields, entity.reading(sent).fields)
    // The present fields alone: an update that changed a property has written them, and a former field with
    // the sent value may be another device's edit.
    let found = entity.reading(server).fields
    let changed = properties.filter { !after.agrees(with: before, on: $0) }
    if changed.contains(where: { found.agrees(with: after, on: $0) }),
      !changed.contains(where: { found.agrees(with: before, on: $0) })
    {
      taken = changed
    }
  }
}

extension RecordMetadata {
  /// Compares the server's copy with an update that this record's batch sent.
  ///
  /// If the server has taken the update, the base becomes what was sent.
  mutating func compare(
    _ operation: CloudOperation,
    since base: FieldBag,
    server: FieldBag,
    _ entity: EntityMapping
  ) -> RepeatedUpdate {
    let update = RepeatedUpdate(
      operation,
      properties: sent,
      since: base,
      server: server,
      entity
    )
    if !update.taken.isEmpty { self.base = update.sent }
    return update
  }

  /// Makes what this record's batch created the base, as far as the server's copy does not show that
  /// another device or another copy of the store created it.
  mutating func noteCreation(
    _ operation: CloudOperation,
    server: FieldBag,
    _ entity: EntityMapping?
  ) {
    guard let base else {
      self.base = operation.set.asBase
      return
    }
    // An object that was restored here has no values that were agreed on.
    if let entity, !base.values.isEmpty {
      _ = compare(operation, since: base, server: server, entity)
    }
  }
}
