import CloudKitServer
import CloudKitWebServices

/// A request's path for logs: without tokens, capabilities and codes.
package enum RedactedPath {
  /// Query items without personal data.
  private static let harmless: Set<Substring> = [
    "ckjsBuildVersion", "ckjsVersion", "clientId", "remapEnums", "getCurrentSyncToken",
    "container",
  ]

  package static func text(_ path: String) -> String {
    let halves = path.split(ascii: "?", maxSplits: 1, omittingEmptySubsequences: false)
    var shown = String(halves.first ?? "")
    if let count = Route(path: path).rules.shownParts {
      let parts = shown.split(ascii: "/")
      if parts.count > count { shown = "/" + parts.prefix(count).joined(separator: "/") + "/…" }
    }
    guard halves.count == 2 else { return shown }
    let items = halves[1].split(ascii: "&").map { item -> String in
      let name = item.prefix(before: "=")
      return harmless.contains(name) ? String(item) : "\(name)=…"
    }
    return shown + "?" + items.joined(separator: "&")
  }
}
