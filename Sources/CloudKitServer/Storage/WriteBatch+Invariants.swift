/// Invariants of what one transaction writes; checked before the write.
extension WriteBatch {
  /// The broken invariants, a sentence each.
  func brokenInvariants() throws -> [String] {
    var broken: [String] = []
    if partition == nil, counter != nil || !records.isEmpty || !zones.isEmpty {
      broken.append("a batch writes records, zones or a counter, and names no partition")
    }
    if let expectedCounter, let counter, counter <= expectedCounter {
      broken.append("a batch does not increase the counter")
    }
    if Set(records.map(\.key)).count != records.count {
      broken.append("a batch writes a record twice")
    }
    if Set(zones.map(\.name)).count != zones.count {
      broken.append("a batch writes a zone twice")
    }
    if !Set(savedEntries.map(\.key)).isDisjoint(with: removedEntries) {
      broken.append("a batch saves and removes one entry of the directory")
    }
    if expectedCounter != nil, let counter {
      // Records of a public database have times as changes.
      for zone in zones where zone.change > counter {
        broken.append("the zone \(zone.name) has a later change than its batch")
      }
    }
    broken += brokenRecordLists()
    for record in records where record.isShare && !record.isDeleted {
      broken += try record.decodedSharing()?.state?.brokenInvariants() ?? []
    }
    return broken
  }

  /// The lists about records name records that the batch writes, and each record once.
  private func brokenRecordLists() -> [String] {
    var broken: [String] = []
    let written = Set(records.map(\.key))
    if !madeRecords.isSubset(of: written) {
      broken.append("a batch makes a record that it does not write")
    }
    if !written.isDisjoint(with: erasedRecords) {
      broken.append("a batch writes and erases one record")
    }
    let relinked = Set(relinkedRecords)
    if !relinked.isSuperset(of: references.map(\.source)) {
      broken.append("a batch adds a reference to a record whose former ones stay")
    }
    if !relinked.isSuperset(of: assetUses.map(\.key)) {
      broken.append("a batch adds the use of a file to a record whose former ones stay")
    }
    return broken
  }
}
