import CloudKitTesting
import Foundation
import OpenCoreData
import Testing

@Suite("Devices of the test kit")
struct TestDeviceTests {
  @Test("A save that conflicts with another one runs its body again on fresh objects")
  func conflictingSave() async throws {
    try await World.with("phone") { _, devices in
      let phone = devices[0]
      try phone.save { _ = $0.make("Post", ["title": "first", "views": 1]) }
      var runs = 0
      try phone.save { context in
        runs += 1
        let post = try context.first("Post", "title", runs == 1 ? "first" : "second")
        if runs == 1 {
          try phone.save { try $0.all("Post").first?.setValue("second", forKey: "title") }
        }
        post.setValue(2, forKey: "views")
      }
      #expect(runs == 2)
      try phone.save { context in
        let post = try #require(try context.all("Post").first)
        #expect(post.value(forKey: "title") as? String == "second")
        #expect(post.value(forKey: "views") as? Int == 2)
      }
    }
  }

  @Test("A save that always conflicts throws the conflict")
  func endlessConflict() async throws {
    try await World.with("phone") { _, devices in
      let phone = devices[0]
      try phone.save { _ = $0.make("Post", ["title": "0"]) }
      var runs = 0
      let error = #expect(throws: (any Error).self) {
        try phone.save { context in
          runs += 1
          let post = try context.first("Post", "title", "\(runs - 1)")
          try phone.save { try $0.all("Post").first?.setValue("\(runs)", forKey: "title") }
          post.setValue("lost", forKey: "title")
        }
      }
      #expect((error as? CocoaError)?.code == .managedObjectMerge)
      #expect(runs == 10)
    }
  }
}
