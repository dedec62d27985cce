/// A request's path as logs may show it: without tokens, capabilities and codes.
package enum RedactedPath {
  /// Query items that say nothing about anybody.
  private static let harmless: Set<Substring> = [
    "ckjsBuildVersion", "ckjsVersion", "clientId", "remapEnums", "getCurrentSyncToken",
    "container",
  ]

  /// Paths whose next part is a right in itself, by how many parts stand before it.
  private static let capabilities: [(prefix: String, kept: Int)] = [
    ("/assets/upload/", 2), ("/assets/download/", 2), ("/webcourier/", 1), ("/events/", 1),
    ("/share/", 1),
  ]

  package static func text(_ path: String) -> String {
    let halves = path.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    var shown = String(halves.first ?? "")
    if let capability = capabilities.first(where: { shown.hasPrefix($0.prefix) }) {
      let parts = shown.split(separator: "/").prefix(capability.kept)
      shown = "/" + parts.joined(separator: "/") + "/…"
    }
    guard halves.count == 2 else { return shown }
    let items = halves[1].split(separator: "&").map { item -> String in
      let name = item.prefix { $0 != "=" }
      return harmless.contains(name) ? String(item) : "\(name)=…"
    }
    return shown + "?" + items.joined(separator: "&")
  }
}
