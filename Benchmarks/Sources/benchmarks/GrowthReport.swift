import Foundation
import LocalWorkload

/// How the cost of contexts and stores grows with the size of hubs, orders, chains and histories.
struct GrowthReport {
  /// Each measurement counts with the least of so many rounds.
  let rounds: Int

  func run() throws {
    print("Growth: processor time at a size, at twice and at four times the size.\n")
    print(row("shape", "size", ["n ms", "2n ms", "4n ms", "exponent"]))
    for shape in GrowthShape.all {
      let costs = try [1, 2, 4].map { factor in
        try (0..<rounds).map { _ in try shape.seconds(shape.size * factor) }.min() ?? 0
      }
      let exponent = String(format: "%.2f", GrowthShape.exponent(costs))
      let milliseconds = costs.map { String(format: "%.1f", $0 * 1000) }
      print(row(shape.name, "\(shape.size)", milliseconds + [exponent]))
    }
    print("")
  }

  private func row(_ name: String, _ size: String, _ cells: [String]) -> String {
    func padded(_ text: String, _ width: Int) -> String {
      String(repeating: " ", count: max(0, width - text.count)) + text
    }
    return name.padding(toLength: 60, withPad: " ", startingAt: 0) + padded(size, 7)
      + cells.map { padded($0, 10) }.joined()
  }
}
