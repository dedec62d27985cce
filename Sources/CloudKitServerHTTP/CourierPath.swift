/// Which requests are long polls.
enum CourierPath {
  static func matches(_ path: some StringProtocol) -> Bool {
    path.hasPrefix("/webcourier/")
  }

  /// Which are streams of events.
  static func isStream(_ path: some StringProtocol) -> Bool {
    path.hasPrefix("/events/")
  }
}
