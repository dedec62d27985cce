import OpenCoreData

/// Values in files that are missing beside the store, as in a store that was restored without the
/// folder of its files: such a value reads as nil here, which no person and no app has set.
extension MirrorSession {
  /// The attributes of a row whose files are missing.
  ///
  /// These attributes are never sent as removed, and the record is looked up: the server's copy has the values. Unsent
  /// edits of them are parked until the files exist, unless another device has edited the attribute since.
  func lookUpMissingFiles(of row: Row, _ name: String) throws -> Set<String> {
    let missing = try rows.missingFiles(of: row)
    guard !missing.isEmpty, try !metadata.isUnreadable(name) else { return missing }
    let attributes = missing.sorted().joined(separator: ", ")
    try metadata.keepUnreadable(
      name,
      reason: "The files of these attributes are missing beside the store: \(attributes)."
    )
    return missing
  }
}
