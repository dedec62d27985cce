/// Containers that are opened, and those that are deleted.
extension SQLCommit {
  /// Throws for a container that is being deleted, and for credentials of one that was deleted a while ago.
  func checkContainer() throws {
    let gate = ContainerGate(session: session)
    if let container = batch.container, try gate.state(of: container) == .erasing {
      throw ContainerGate<Session>.refusal
    }
    for container in batch.requiredContainers.sorted() {
      guard try gate.state(of: container) == .open else { throw ContainerGate<Session>.refusal }
    }
  }

  func writeContainers() throws {
    if let container = batch.container {
      try session.run(
        "DELETE FROM directory_entries WHERE kind = $1 AND name = $2",
        ContainerErasing.key(container).values
      )
      try session.insert(into: StorageTables.containers, .ignored, [[.text(container)]])
    }
    if let container = batch.erasedContainer { try erase(container: container) }
    try session.run(
      "DELETE FROM users WHERE container = $1 AND account = $2",
      each: batch.removedUsers.map { [.text($0.container), .text($0.account)] }
    )
  }

  /// Removes the partition from the directory, and the entries about it.
  func remove(_ partition: PartitionID) throws {
    let number = SQLValue.integer(partition.rawValue)
    for table in ["databases", "partitions", "events"] {
      try session.run("DELETE FROM \(table) WHERE partition = $1", [number])
    }
    let text = String(partition.rawValue)
    for kind in [DirectoryEntry.Kind.assetGarbage, .endedZone, .unusedUpload] {
      try session.run(
        """
        DELETE FROM directory_entries WHERE kind = $1 AND owner = $2
          \(session.dialect.naming("owner <> ''"))
        """,
        [.text(kind.rawValue), .text(text)]
      )
    }
    try session.run(
      "DELETE FROM directory_entries WHERE kind = $1 AND name = $2",
      DirectoryEntry.Key(.purgedPartition, text).values
    )
  }

  private func erase(container: String) throws {
    // First, since it waits for the transactions that hold the gate: what they wrote is deleted too.
    try session.run("DELETE FROM containers WHERE container = $1", [.text(container)])
    let devices = try session.query(
      "SELECT token FROM devices WHERE container = $1",
      [.text(container)]
    ) { $0.text(0) }
    try session.run(
      "DELETE FROM directory_entries WHERE kind = $1 AND name = $2",
      each: devices.map { DeviceBinding.key($0).values }
        + [DirectoryEntry.Key(.schemaErasing, container).values]
    )
    for owner in ServerKey.owners(in: container) {
      try session.run(
        """
        DELETE FROM directory_entries WHERE kind = $1 AND owner = $2
          \(session.dialect.naming("owner <> ''"))
        """,
        [.text(DirectoryEntry.Kind.serverKey.rawValue), .text(owner)]
      )
    }
    for table in [
      "sessions", "devices", "api_tokens", "schemas", "short_guids", "share_links",
    ] {
      try session.run("DELETE FROM \(table) WHERE container = $1", [.text(container)])
    }
  }
}

extension DirectoryEntry.Key {
  fileprivate var values: [SQLValue] { [.text(kind.rawValue), .text(name)] }
}
