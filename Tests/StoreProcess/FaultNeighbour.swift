import Effects
import Foundation
import OpenCoreData

/// Another process, which saves at the moment of a system call.
///
/// `save PATH NAME` opens the store with its own model, waits for no lock, saves a card and closes
/// the store.
final class FaultNeighbour {
  static let author = "Other"

  private let process = Process()
  private let input = Pipe()
  private let output = Pipe()

  init() throws {
    process.executableURL = URL(fileURLWithPath: CommandLine.arguments[0])
    process.arguments = ["/", "neighbour"]
    process.standardInput = input
    process.standardOutput = output
    try process.run()
  }

  /// Makes the other process save a card; returns whether it reports success.
  func save(_ name: String, to url: URL) -> Bool {
    input.fileHandleForWriting.write(Data("save \(url.path) \(name)\n".utf8))
    var answer = ""
    while let byte = output.fileHandleForReading.readData(ofLength: 1).first, byte != 10 {
      answer.append(Character(UnicodeScalar(byte)))
    }
    return answer == "saved"
  }

  func end() {
    input.fileHandleForWriting.closeFile()
    process.waitUntilExit()
  }

  /// The main function of the other process.
  static func run() {
    while let line = readLine() {
      let words = line.split(separator: " ").map(String.init)
      guard words.count == 3 else { return }
      let result = Result { try save(words[2], to: URL(fileURLWithPath: words[1])) }
      let answer =
        switch result {
        case .success: "saved\n"
        case .failure(let error): "refused \((error as NSError).code)\n"
        }
      FileHandle.standardOutput.write(Data(answer.utf8))
    }
  }

  private static func save(_ name: String, to url: URL) throws {
    do {
      try save(name, to: url, isNewer: false)
    } catch let error as NSError
      where error.code == NSPersistentStoreIncompatibleVersionHashError
    {
      try save(name, to: url, isNewer: true)
    }
  }

  private static func save(_ name: String, to url: URL, isNewer: Bool) throws {
    guard try FileSystem.size(of: url.path) > 0 else { throw CocoaError(.fileReadNoSuchFile) }
    var options = FaultModel.options
    // The lock's holder waits for this process's output.
    options[NSPersistentStoreTimeoutOption] = 0
    let model = FaultModel.make(isNewer: isNewer)
    try FaultModel.withStore(url, model: model, options: options) { context in
      context.transactionAuthor = author
      let card = NSEntityDescription.insertNewObject(forEntityName: "Card", into: context)
      card.setValue(name, forKey: isNewer ? "title" : "name")
      card.setValue(Data(repeating: 5, count: FaultModel.pictureSize), forKey: "picture")
      try context.save()
    }
  }
}
