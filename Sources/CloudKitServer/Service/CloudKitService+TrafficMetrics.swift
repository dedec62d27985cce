/// Metrics of listeners, files and connections to the database.
extension CloudKitService {
  var trafficMetricsText: String {
    var lines = MetricLines()
    let listeners = devices.hub.listenerCounts
    lines.add(
      "watershed_event_streams",
      "gauge",
      "Event streams that wait.",
      "\(listeners.streams)"
    )
    lines.add("watershed_long_polls", "gauge", "Long polls that wait.", "\(listeners.polls)")
    let files = assets.traffic.counts
    lines.add(
      "watershed_asset_received_bytes_total",
      "counter",
      "Bytes of files that were uploaded and stored.",
      "\(files.received)"
    )
    lines.add(
      "watershed_asset_sent_bytes_total",
      "counter",
      "Bytes of files that were downloaded.",
      "\(files.sent)"
    )
    if let stored = files.stored {
      lines.add(
        "watershed_asset_bytes",
        "gauge",
        "Bytes of the stored files, as the last hourly maintenance counted them.",
        "\(stored.bytes)"
      )
      lines.add(
        "watershed_asset_files",
        "gauge",
        "The stored files, as the last hourly maintenance counted them.",
        "\(stored.files)"
      )
    }
    if let pool = storage.connections {
      lines.add(
        "watershed_postgresql_connections",
        "gauge",
        "Connections to PostgreSQL: in use, and idle in the pool.",
        values: [(#"{state="idle"}"#, "\(pool.idle)"), (#"{state="used"}"#, "\(pool.used)")]
      )
      lines.add(
        "watershed_postgresql_connections_opened_total",
        "counter",
        "Connections to PostgreSQL that were opened.",
        "\(pool.opened)"
      )
    }
    return lines.text
  }
}
