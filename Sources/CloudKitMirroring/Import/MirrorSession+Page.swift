import Foundation

/// A page of a zone's feed is older than what another process that mirrors the same file has applied.
package struct OutdatedPage: Error, Hashable, Sendable {}

/// Another process that mirrors the same file is applying a page.
package struct ClaimedPage: Error, Hashable, Sendable {}

extension MirrorSession {
  /// Throws if the zone's token or generation has changed since the page was requested, or if another process is
  /// applying a page or has taken over this claim.
  ///
  /// A page may have been fetched before changes that another process has applied: it would take rows, change
  /// tags and the token back. The token is stored with the last transaction of a page, so the device of the
  /// process marks the others.
  package func claimPage(after zone: MirrorMetadata.Zone, isFirst: Bool) throws {
    let present = try metadata.zone(zone.name)
    guard present.token == zone.token, present.generation == zone.generation else {
      throw OutdatedPage()
    }
    let now = context.effects.now
    if try metadata.text(.importingDevice) != context.device {
      guard isFirst else { throw OutdatedPage() }
      if try metadata.isImporting(otherThan: context.device, at: now) { throw ClaimedPage() }
      try metadata.setMeta(.importingDevice, .text(context.device))
    }
    try metadata.setMeta(.importingTime, .integer(MirrorMetadata.milliseconds(now)))
    // From the first records on, there is metadata to discard if the zone is lost.
    if !present.isSaved {
      var saved = present
      saved.isSaved = true
      try metadata.save(saved)
    }
  }

  /// Whether pages of the zone's feed are left, which another process reads: until its end is read, an object that
  /// would go with a deleted one may get another owner.
  func hasOpenFeed() throws -> Bool {
    guard let token = try metadata.blob(.openFeed) else { return false }
    return try metadata.zone(context.zone).token == token
  }

  /// The page is applied: another process may apply the next one.
  func endPage() throws { try metadata.setMeta(.importingTime, nil) }

  /// Releases this process's claim of a page that it does not finish: the next import begins at once.
  func giveUpPage() throws {
    if try metadata.text(.importingDevice) == context.device { try endPage() }
  }
}

extension MirrorMetadata {
  /// The milliseconds within which a process that applies a page writes the next part of it; after that its claim
  /// has expired, because it may have ended.
  private static let claimLifetime: Int64 = 5000

  static func milliseconds(_ date: Date) -> Int64 {
    Int64(date.timeIntervalSinceReferenceDate * 1000)
  }

  /// Whether another process is applying a page: two that took it from each other would both fetch it again and
  /// again.
  ///
  /// A time in the future was written with a wrong clock, and is ignored.
  package func isImporting(otherThan device: String, at now: Date) throws -> Bool {
    guard let claimant = try text(.importingDevice), claimant != device,
      let time = try integer(.importingTime)
    else { return false }
    return (0..<Self.claimLifetime).contains(Self.milliseconds(now) - time)
  }
}
