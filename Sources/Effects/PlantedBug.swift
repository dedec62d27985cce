/// A defect that a debug build can switch on, to prove that the simulator finds it.
///
/// Release builds have none: there the switch is always off.
package enum PlantedBug: String, CaseIterable, Sendable, Codable {
  /// The import ignores deletions of the feed.
  case forgetTombstone
  /// An export leaves out an object that a save changed.
  case skipHistoryRow
  /// An import takes the server's value over one that was edited here.
  case importOverEdit
  /// A batch whose reply did not come is dropped.
  case forgetRetry
  /// A reply clears marks of edits that were made after the batch was put together.
  case clearMarkTooEarly
  /// A token that is too old is taken for that of another zone.
  case expiredIsOtherZone
  /// An object whose record is of a former entity counts as missing.
  case sweepRenamed
  /// The token of a page is kept although the last record of the page was not applied.
  case skipLastOfPage
  /// The server gives a changed record the change tag that it had.
  case reuseTag
  /// A deletion that is sent leaves no tombstone at the server.
  case dropTombstone
  /// A device does not keep an edit that a deletion by another device overrides.
  case skipRecovery
  /// A device does not keep unsent edits of objects that the deletion of their owner takes along.
  case skipTakenAlong
  /// A conflict is answered by sending the own values of all properties again.
  case overwriteOnConflict
  /// A fetched file is not compared with its checksum.
  case trustFetchedFiles
  /// The fields of renamed attributes are not read under their former names.
  case forgetFormerNames
  /// A value that was taken from the former field of a renamed attribute counts as an edit of the device.
  case ownFormerEdits
  /// A restored server is taken for one whose token is too old.
  case restoredIsExpired
  /// A conflict is merged with a copy of the record without its files.
  case mergeWithoutFiles
  /// All launches of a store, and all copies of it, number their batches under one name.
  case reuseSequence
  /// History that is deleted is not folded before, and its gap is not noticed.
  case ignoreHistoryGap
  /// A record that is missing from another zone of the same name is taken for deleted.
  case trustOtherZone
  /// Agreed values that another device replaces in a zone that was made again are not kept for recovery.
  case forgetReplaced
  /// A reading from the start does not ask for deletions.
  case rereadWithoutDeletions
  /// Each copy of a store gives an object that was not sent a record name of its own.
  case randomNames
  /// A full database gets the deletion of an owner before the moves of its members.
  case deleteOwnersFirst
}

extension Effects {
  /// Switches a planted bug on; does nothing in a release build.
  package mutating func plant(_ bug: PlantedBug?) {
    #if DEBUG
    plantedBug = bug
    #endif
  }

  /// Whether a planted bug is on; false in a release build.
  package func has(_ bug: PlantedBug) -> Bool {
    #if DEBUG
    plantedBug == bug
    #else
    false
    #endif
  }
}
