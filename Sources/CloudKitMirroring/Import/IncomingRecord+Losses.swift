/// Agreed values that the service may have lost: it is another one, or was restored from a backup, or the
/// zone was made again.
extension IncomingRecord {
  /// The properties whose last agreed value the service has lost: its copy of the record was saved
  /// before the agreed one.
  ///
  /// The times are the service's own. If its clock was wrong the other values are kept; the values
  /// that lose are in the recovery list in both cases. Always keeping the agreed values would be no
  /// better: a device that reconnects late would revert later edits of others.
  func lostProperties(_ local: FieldBag) -> Set<String> {
    guard let base, isOtherServer, known.stamps.isNewer(than: record.stamps) else { return [] }
    return agreedProperties(local, since: base)
  }

  /// The properties that have an agreed value and no field in a re-created record.
  ///
  /// The version of the app that re-created it may lack them. A removal that its device had not sent
  /// before cannot be distinguished from that, and is undone.
  func omittedProperties(_ local: FieldBag) -> Set<String> {
    guard let base, isForgotten || isOtherServer, let before = known.stamps.created,
      let now = record.stamps.created, now != before
    else { return [] }
    return agreedProperties(local, since: base).filter { record.fields.content(of: $0) == nil }
  }

  /// The properties of an object that was never sent which the server has as they were at an earlier
  /// opening of the store, and not at the last one.
  func followedProperties(since trusted: [FieldBag]) -> Set<String> {
    guard let base, known.isNeverSent, !trusted.isEmpty else { return [] }
    let earlier = trusted.map { entity.reading($0).fields }
    return Set(
      entity.fieldProperties.filter { property in
        !base.agrees(with: record.fields, on: property)
          && earlier.contains { $0.agrees(with: record.fields, on: property) }
      }
    )
  }

  /// The properties that have the agreed value here, and another value in the service's copy.
  func agreedProperties(_ local: FieldBag, since base: FieldBag) -> Set<String> {
    Set(
      entity.fieldProperties.filter { property in
        // A link whose object has not arrived is not in the row, and must not be exported as
        // removed.
        !base.agrees(with: record.fields, on: property) && base.agrees(with: local, on: property)
      }
    )
  }
}
