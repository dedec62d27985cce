/// A framework of Apple's platforms that Linux lacks, and the replacement for it.
struct AppleModule {
  var name: String
  var remedy: String
  /// The module that stands in for it on Linux.
  var substitute: String?

  private static let remedies: [String: String] = [
    "Combine": "put publishers inside the same #if, or use OpenCombine; AppleShims has @Published "
      + "and ObservableObject without publishers",
    "CryptoKit": "import Crypto of swift-crypto in #else; it has the same names",
    "CommonCrypto": "use Crypto of swift-crypto",
    "CoreLocation": "CLLocation and CLLocationCoordinate2D come with import CloudKit",
    "ObjectiveC": "put what asks the Objective-C runtime inside the same #if",
  ]

  /// The logs of `AppleShims` write nothing; Logging of swift-log does.
  private static let substitutes = ["os": "AppleShims", "OSLog": "AppleShims", "Darwin": "Glibc"]

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
    if let substitute = Self.substitutes[name] {
      self.init(name: name, remedy: "", substitute: substitute)
    } else if let remedy = Self.remedies[name] {
      self.init(name: name, remedy: remedy)
    } else if Self.others.contains(name) {
      self.init(name: name, remedy: "put what uses it inside the same #if")
    } else {
      return nil
    }
  }

  private init(name: String, remedy: String, substitute: String? = nil) {
    self.name = name
    self.remedy = remedy
    self.substitute = substitute
  }
}
