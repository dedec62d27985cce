import Foundation

/// Metrics of the data folder.
extension CloudKitService {
  var dataMetricsText: String {
    guard let folder = configuration.dataFolder else { return "" }
    var lines = MetricLines()
    func size(_ name: String) -> Int64? {
      let path = folder.appendingPathComponent(name).path
      let attributes = try? FileManager.default.attributesOfItem(atPath: path)
      return (attributes?[.size] as? NSNumber)?.int64Value
    }
    if configuration.database == nil, let bytes = size(Self.databaseFileName) {
      lines.add("watershed_database_bytes", "gauge", "Size of the database's file.", "\(bytes)")
      lines.add(
        "watershed_database_log_bytes",
        "gauge",
        "Size of the database's write-ahead log.",
        "\(size(Self.databaseFileName + "-wal") ?? 0)"
      )
    }
    let disk = try? FileManager.default.attributesOfFileSystem(forPath: folder.path)
    if let free = (disk?[.systemFreeSize] as? NSNumber)?.int64Value {
      lines.add(
        "watershed_disk_free_bytes",
        "gauge",
        "Free space on the disk of the data folder.",
        "\(free)"
      )
    }
    if let time = lastBackup(in: folder) {
      lines.add(
        "watershed_backup_time_seconds",
        "gauge",
        "When the last backup was complete, in seconds since 1970.",
        "\(time / 1000)"
      )
    }
    return lines.text
  }

  private func lastBackup(in folder: URL) -> Int64? {
    do {
      return try LastBackup.time(in: folder)
    } catch {
      configuration.logger.error("The time of the last backup is not in the metrics: \(error)")
      return nil
    }
  }
}

/// When the last backup of a data folder was complete, in a file of it.
package enum LastBackup {
  private static let fileName = "last-backup"

  static func note(in folder: URL, now: Int64) throws {
    try PrivateFile.write(Data("\(now)\n".utf8), to: folder.appendingPathComponent(fileName))
  }

  /// The time of the last backup in milliseconds since 1970; nil if none was made.
  package static func time(in folder: URL) throws -> Int64? {
    let file = folder.appendingPathComponent(fileName)
    guard try ForeignFile.isThere(file) else { return nil }
    let text = String(decoding: try Data(contentsOf: file), as: UTF8.self)
    return Int64(text.trimmingCharacters(in: .whitespacesAndNewlines))
  }
}
