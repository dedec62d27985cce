import Foundation
import Synchronization

/// The time in headers, formatted once per second.
final class HTTPDate: Sendable {
  private let last = Mutex<(second: Int, text: String)>((0, ""))

  /// The current time.
  var now: String {
    let second = time(nil)
    return last.withLock { last in
      if last.second != second { last = (second, Self.text(second)) }
      return last.text
    }
  }

  /// Seconds since 1970 in the format of RFC 9110, such as `Sun, 06 Nov 1994 08:49:37 GMT`.
  static func text(_ second: Int) -> String {
    var moment = second
    var parts = tm()
    gmtime_r(&moment, &parts)
    func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
    let day = days[Int(parts.tm_wday)]
    let month = months[Int(parts.tm_mon)]
    let clock = "\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec))"
    return "\(day), \(two(parts.tm_mday)) \(month) \(parts.tm_year + 1900) \(clock) GMT"
  }

  private static let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
  private static let months = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
  ]
}
