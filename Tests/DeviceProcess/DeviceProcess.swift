import CloudKitMirroring
import Effects
import Foundation
import OpenCloudKit
import OpenCoreData
import WatershedCommands

/// A device in a process of its own, for tests that kill it.
///
/// `DeviceProcess NAME FOLDER MODEL URL CONTAINER API-TOKEN WEB-TOKEN SEED write|settle`
///
/// `write` saves without end, and prints a line after each save, and before each that changes or deletes
/// an object. `settle` waits until everything is sent, prints the whole store as one JSON line for each
/// line it reads, and ends with its input.
@main
struct DeviceProcess {
  let device: DemoDevice
  let random: SeededRandomness

  static func main() async throws {
    let arguments = CommandLine.arguments
    guard arguments.count == 10, let url = URL(string: arguments[4]),
      let seed = UInt64(arguments[8])
    else {
      FileHandle.standardError.write(Data("wrong arguments\n".utf8))
      exit(64)
    }
    let cloud = CKContainer(
      identifier: arguments[5],
      configuration: CKContainerConfiguration(
        url: url,
        containerIdentifiers: [arguments[5]],
        environment: .development,
        apiToken: arguments[6],
        webAuthToken: arguments[7]
      ),
      transport: HTTPTransport(baseURL: url),
      effects: .live
    )
    let device = try DemoDevice(
      name: arguments[1],
      model: try DemoModel.load(path: arguments[3]),
      cloud: cloud,
      link: SwitchableLink(HTTPTransport(baseURL: url)),
      folder: URL(fileURLWithPath: arguments[2])
    )
    let process = DeviceProcess(device: device, random: SeededRandomness(seed: seed))
    if arguments[9] == "write" {
      try await process.write()
    } else {
      try await process.settle()
    }
  }

  // MARK: Writing until killed

  private func write() async throws {
    for number in 0... {
      let line = try await device.perform { [random, device] context in
        try Self.change(context, random, title: "\(device.name)-\(random.next())-\(number)")
      }
      Self.say(line)
      try await Task.sleep(for: .milliseconds(3))
    }
  }

  /// Saves one random change; the printed line acknowledges it.
  private static func change(
    _ context: NSManagedObjectContext,
    _ random: SeededRandomness,
    title: String
  ) throws -> String {
    let request = NSFetchRequest<NSManagedObject>(entityName: "Post")
    request.fetchLimit = 20
    let posts = try context.fetch(request)
    let choice = posts.isEmpty ? 0 : random.next() % 10
    switch choice {
    case 0...4:
      let post = NSEntityDescription.insertNewObject(forEntityName: "ImagePost", into: context)
      post.setValue(title, forKey: "title")
      let attachment = NSEntityDescription.insertNewObject(
        forEntityName: "Attachment",
        into: context
      )
      attachment.setValue(post, forKey: "post")
      let tag = NSEntityDescription.insertNewObject(forEntityName: "Tag", into: context)
      tag.setValue("tag of \(title)", forKey: "name")
      post.mutableSetValue(forKey: "tags").add(tag)
      try context.save()
      return "inserted \(title)"
    case 9:
      let victim = posts[Int(random.next() % UInt64(posts.count))]
      let gone = victim.value(forKey: "title") as? String ?? ""
      context.delete(victim)
      // Printed before the save: a process that is killed during it may have deleted the object or
      // not.
      say("delete \(gone)")
      try context.save()
      return "deleted \(gone)"
    default:
      let post = posts[Int(random.next() % UInt64(posts.count))]
      let edited = post.value(forKey: "title") as? String ?? ""
      post.setValue(title, forKey: "content")
      say("edit \(edited) \(title)")
      try context.save()
      return "edited \(edited) \(title)"
    }
  }

  // MARK: Settling

  private func settle() async throws {
    while readLine() != nil {
      let isSettled = try await device.isSettled()
      let snapshot = try await device.snapshot()
      var entries: [String: [String]] = [:]
      for (identity, entry) in snapshot.entries {
        let values = entry.values.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
        let links = entry.links.sorted { $0.key < $1.key }
          .map { "\($0.key)=\($0.value.joined(separator: " "))" }
        entries[identity] = [entry.entityName] + values + links
      }
      let answer = Answer(
        isSettled: isSettled && snapshot.nameless.isEmpty,
        entries: entries
      )
      Self.say(String(decoding: try JSONEncoder().encode(answer), as: UTF8.self))
    }
    await device.stop()
  }

  private struct Answer: Encodable {
    var isSettled: Bool
    var entries: [String: [String]]
  }

  private static func say(_ line: String) {
    FileHandle.standardOutput.write(Data((line + "\n").utf8))
  }
}
