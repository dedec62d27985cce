/// A page of a zone's feed is older than what another process that mirrors the same file has applied.
package struct OutdatedPage: Error, Hashable, Sendable {}

extension MirrorSession {
  /// Throws if the zone's token or generation has changed since the page was requested, or if another process
  /// has begun to apply a page meanwhile.
  ///
  /// A page may have been fetched before changes that another process has applied: it would take rows, change
  /// tags and the token back. The token is stored with the last transaction of a page, so the device of the
  /// process marks the others.
  package func claimPage(after zone: MirrorMetadata.Zone, isFirst: Bool) throws {
    let present = try metadata.zone(zone.name)
    guard present.token == zone.token, present.generation == zone.generation else {
      throw OutdatedPage()
    }
    // From its first records on, the loss of the zone has something to forget.
    if !present.isSaved {
      var saved = present
      saved.isSaved = true
      try metadata.save(saved)
    }
    let claimant = try metadata.text(.importingDevice)
    guard claimant != context.device else { return }
    guard isFirst else { throw OutdatedPage() }
    try metadata.setMeta(.importingDevice, .text(context.device))
  }
}
