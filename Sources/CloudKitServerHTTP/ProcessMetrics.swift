import CloudKitServer
import Foundation
import NIOSSL

/// Metrics of the process, with the names that other programs' exporters have.
enum ProcessMetrics {
  /// When the first server of the process began, in seconds since 1970.
  private static let start = Date().timeIntervalSince1970

  /// Reads the clock, unless an earlier server has.
  static func noteStart() { _ = start }

  static func text(_ configuration: CloudKitHTTPServer.Configuration) -> String {
    var lines = MetricLines()
    lines.add(
      "watershed_build_info",
      "gauge",
      "The program's version, as a label.",
      "1",
      labels: #"{version="\#(configuration.version)"}"#
    )
    lines.add(
      "process_start_time_seconds",
      "gauge",
      "When the process began, in seconds since 1970.",
      "\(start)"
    )
    if let seconds = processorSeconds {
      lines.add(
        "process_cpu_seconds_total",
        "counter",
        "Processor time of the process.",
        "\(seconds)"
      )
    }
    if let files = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count {
      lines.add("process_open_fds", "gauge", "Open files and connections.", "\(files)")
    }
    if let end = configuration.tls.flatMap(certificateEnd) {
      lines.add(
        "watershed_certificate_expiry_time_seconds",
        "gauge",
        "When the TLS certificate expires, in seconds since 1970.",
        "\(end)"
      )
    }
    return lines.text
  }

  private static var processorSeconds: Double? {
    var time = timespec()
    guard clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) == 0 else { return nil }
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }

  /// The end of the certificate in the file, which is the one in use or the next one.
  private static func certificateEnd(_ tls: CloudKitHTTPServer.TLS) -> Int? {
    guard let chain = try? NIOSSLCertificate.fromPEMFile(tls.certificatePath) else { return nil }
    return chain.first.map { Int($0.notValidAfter) }
  }
}
