/// Which requests are long polls.
enum CourierPath {
  static func matches(_ path: some StringProtocol) -> Bool {
    path.hasPrefix("/webcourier/")
  }
}
