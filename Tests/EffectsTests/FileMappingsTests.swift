import Effects
import Foundation
import Testing

@Suite("FileMappings maps files up to a limit")
struct FileMappingsTests {
  private let folder = FileManager.default.temporaryDirectory
    .appendingPathComponent("FileMappingsTests-\(UUID().uuidString)").path
  private let large = Data(repeating: 5, count: FileMappings.smallest)

  init() throws {
    try FileSystem.makeFolder(folder)
  }

  private func finish() throws { try FileSystem.removeFolder(folder) }

  @Test("Small files are read, larger ones are mapped, and a missing file is nil")
  func kinds() throws {
    let mappings = FileMappings(limit: 8)
    try FileSystem.save(large.dropLast(), to: "\(folder)/small")
    try FileSystem.save(large, to: "\(folder)/large")
    try FileSystem.save(Data(), to: "\(folder)/empty")
    guard case .read(let small) = try mappings.contents(of: "\(folder)/small") else {
      throw CocoaError(.fileReadUnknown)
    }
    #expect(small == large.dropLast())
    guard case .read(let empty) = try mappings.contents(of: "\(folder)/empty") else {
      throw CocoaError(.fileReadUnknown)
    }
    #expect(empty.isEmpty)
    guard case .mapped(let mapped) = try mappings.contents(of: "\(folder)/large") else {
      throw CocoaError(.fileReadUnknown)
    }
    #expect(mapped == large)
    let missing = try mappings.contents(of: "\(folder)/none")
    #expect(missing == nil)
    #expect(throws: CocoaError.self) { try mappings.contents(of: folder) }
    try finish()
  }

  @Test("A removed file remains readable, and changing its bytes in place leaves the file as it is")
  func lifetime() throws {
    let mappings = FileMappings(limit: 8)
    try FileSystem.save(large, to: "\(folder)/large")
    try FileSystem.duplicate("\(folder)/large", as: "\(folder)/second")
    guard case .mapped(var mapped) = try mappings.contents(of: "\(folder)/large") else {
      throw CocoaError(.fileReadUnknown)
    }
    try FileSystem.remove("\(folder)/large")
    #expect(mapped == large)
    mapped[0] = 6
    mapped.append(7)
    #expect(mapped.first == 6 && mapped.last == 7 && mapped.count == large.count + 1)
    #expect(try FileSystem.contents(of: "\(folder)/second") == large)
    try finish()
  }

  @Test("At the limit a file is not mapped, until another mapping has been released")
  func limit() throws {
    let mappings = FileMappings(limit: 1)
    try FileSystem.save(large, to: "\(folder)/large")
    func isMapped(_ contents: FileMappings.Contents?) -> Bool {
      if case .mapped = contents { return true }
      return false
    }
    do {
      let first = try mappings.contents(of: "\(folder)/large")
      #expect(isMapped(first))
      guard case .unmapped = try mappings.contents(of: "\(folder)/large") else {
        throw CocoaError(.fileReadUnknown)
      }
      withExtendedLifetime(first) {}
    }
    #expect(isMapped(try mappings.contents(of: "\(folder)/large")))
    try finish()
  }
}
