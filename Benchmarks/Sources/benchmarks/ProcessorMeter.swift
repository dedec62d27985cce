import Foundation

/// The processor time of this program and of the programs it started, in seconds: it is comparable
/// on a busy machine.
struct ProcessorMeter {
  /// The time of this process with all its threads, and of the process trees below the given ones.
  static func seconds(roots: [Int32] = []) -> Double {
    // Children count with the time that they had used when they ended.
    own(RUSAGE_SELF.rawValue) + own(RUSAGE_CHILDREN.rawValue) + others(below: roots)
  }

  private static func own(_ who: Int32) -> Double {
    var usage = rusage()
    getrusage(__rusage_who_t(who), &usage)
    return [usage.ru_utime, usage.ru_stime].reduce(0) {
      $0 + Double($1.tv_sec) + Double($1.tv_usec) * 1e-6
    }
  }

  private struct Entry {
    var parent: Int32
    var ticks: Double
  }

  /// Read from /proc, where each process reports its own time and that of its ended children.
  private static func others(below roots: [Int32]) -> Double {
    guard !roots.isEmpty else { return 0 }
    let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
    var entries: [Int32: Entry] = [:]
    for id in names.compactMap(Int32.init) {
      guard let text = try? String(contentsOfFile: "/proc/\(id)/stat", encoding: .utf8),
        let end = text.lastIndex(of: ")")
      else { continue }
      // After the name the third field follows: state, parent, …
      let fields = text[end...].dropFirst(2).split(separator: " ")
      guard fields.count > 14, let parent = Int32(fields[1]) else { continue }
      let ticks = fields[11...14].compactMap { Double($0) }.reduce(0, +)
      entries[id] = Entry(parent: parent, ticks: ticks)
    }
    func belongs(_ id: Int32) -> Bool {
      var id = id
      while !roots.contains(id) {
        guard let parent = entries[id]?.parent, parent > 0 else { return false }
        id = parent
      }
      return true
    }
    let ticks = entries.filter { belongs($0.key) }.values.reduce(0) { $0 + $1.ticks }
    return ticks / Double(sysconf(Int32(_SC_CLK_TCK)))
  }
}
