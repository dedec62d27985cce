/// A framework of Apple's platforms that Linux lacks, and the replacement for it.
struct AppleModule {
  var name: String
  var remedy: String

  private static let remedies: [String: String] = [
    "Combine": "put publishers and @Published inside the same #if, or use OpenCombine",
    "os": "import AppleShims in #else, whose Logger writes nothing, or use Logging of swift-log",
    "OSLog": "import AppleShims in #else, whose Logger writes nothing, or use Logging of swift-log",
    "CryptoKit": "import Crypto of swift-crypto in #else; it has the same names",
    "CommonCrypto": "use Crypto of swift-crypto",
    "CoreLocation": "CLLocation and CLLocationCoordinate2D come with import CloudKit",
    "Darwin": "import Glibc in #else",
    "ObjectiveC": "put what asks the Objective-C runtime inside the same #if",
  ]

  private static let others: Set<String> = [
    "AppIntents", "AppKit", "AVFoundation", "BackgroundTasks", "Cocoa", "Contacts", "CoreGraphics",
    "CoreImage", "CoreServices", "CoreSpotlight", "EventKit", "GameplayKit", "HealthKit", "Intents",
    "LocalAuthentication", "MapKit", "MobileCoreServices", "Network", "Photos", "QuartzCore",
    "Security",
    "StoreKit", "SwiftData", "SwiftUI", "SystemConfiguration", "UIKit", "UniformTypeIdentifiers",
    "UserNotifications", "WatchConnectivity", "WatchKit", "WidgetKit",
  ]

  /// Looks up the framework of a name, if Linux lacks it.
  init?(_ name: String) {
    if let remedy = Self.remedies[name] {
      self.init(name: name, remedy: remedy)
    } else if Self.others.contains(name) {
      self.init(name: name, remedy: "put what uses it inside the same #if")
    } else {
      return nil
    }
  }

  private init(name: String, remedy: String) {
    self.name = name
    self.remedy = remedy
  }

  /// Whether a condition of `#if` is true on Apple's platforms only.
  static func isCondition(_ condition: String) -> Bool {
    guard !condition.contains("!") else { return false }
    let text = condition.filter { !$0.isWhitespace }
    if ["os(macOS)", "os(iOS)", "os(tvOS)", "os(watchOS)", "os(visionOS)"].contains(
      where: text.contains
    ) {
      return true
    }
    return text.matches(of: /canImport\((\w+)\)/).contains { Self(String($0.output.1)) != nil }
  }
}
