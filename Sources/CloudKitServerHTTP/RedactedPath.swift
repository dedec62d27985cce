import CloudKitServer

/// A request's path for logs: without tokens, capabilities and codes.
package enum RedactedPath {
  /// Query items without personal data.
  private static let harmless: Set<Substring> = [
    "ckjsBuildVersion", "ckjsVersion", "clientId", "remapEnums", "getCurrentSyncToken",
    "container",
  ]

  package static func text(_ path: String) -> String {
    let halves = path.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    var shown = String(halves.first ?? "")
    if let count = Route(path: path).rules.shownParts {
      let parts = shown.split(separator: "/")
      if parts.count > count { shown = "/" + parts.prefix(count).joined(separator: "/") + "/…" }
    }
    guard halves.count == 2 else { return shown }
    let items = halves[1].split(separator: "&").map { item -> String in
      let name = item.prefix { $0 != "=" }
      return harmless.contains(name) ? String(item) : "\(name)=…"
    }
    return shown + "?" + items.joined(separator: "&")
  }
}
