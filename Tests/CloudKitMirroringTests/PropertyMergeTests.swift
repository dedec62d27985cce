import CloudKitMirroring
import Foundation
import Testing

@Suite struct PropertyMergeTests {
  private static let values: [MirrorValue?] = [nil, .integer(1), .integer(2), .integer(3)]

  private func bag(_ value: MirrorValue?) -> FieldBag {
    FieldBag(value.map { ["CD_p": $0] } ?? [:])
  }

  @Test("Every small world: nothing that only one side changed is lost, and both agree after")
  func exhaustive() {
    var worlds = 0
    for base in Self.values {
      for server in Self.values {
        for local in Self.values {
          for isPending in [false, true] {
            worlds += 1
            let merge = PropertyMerge(
              properties: ["p"],
              pending: isPending ? ["p"] : [],
              base: bag(base),
              server: bag(server),
              local: bag(local)
            )
            let result = merge.fromServer.contains("p") ? server : local
            let localChanged = isPending && local != base
            if localChanged {
              #expect(result == local)
              #expect(merge.stillPending.contains("p") == (local != server))
              #expect(merge.conflicting.contains("p") == (local != server && server != base))
            } else {
              #expect(result == server)
              #expect(merge.stillPending.isEmpty)
            }
            // A value that is not sent must equal the server's.
            if merge.stillPending.isEmpty { #expect(result == server) }
          }
        }
      }
    }
    #expect(worlds == 128)
  }

  @Test("Without a base, a value wins over no value and this device's over the server's")
  func withoutBase() {
    for (server, local, expected) in [
      (MirrorValue.integer(1), nil, MirrorValue.integer(1)), (nil, .integer(2), .integer(2)),
      (.integer(1), .integer(2), .integer(2)), (nil, nil, nil),
    ] as [(MirrorValue?, MirrorValue?, MirrorValue?)] {
      let merge = PropertyMerge(
        properties: ["p"],
        pending: ["p"],
        base: nil,
        server: bag(server),
        local: bag(local)
      )
      #expect((merge.fromServer.contains("p") ? server : local) == expected)
    }
  }

  @Test("Two devices that edit different properties both keep their edits")
  func differentProperties() {
    let base = FieldBag(["CD_a": .integer(0), "CD_b": .integer(0)])
    let server = FieldBag(["CD_a": .integer(1), "CD_b": .integer(0)])
    let local = FieldBag(["CD_a": .integer(0), "CD_b": .integer(2)])
    let merge = PropertyMerge(
      properties: ["a", "b"],
      pending: ["b"],
      base: base,
      server: server,
      local: local
    )
    #expect(merge.fromServer == ["a"])
    #expect(merge.stillPending == ["b"])
    #expect(merge.conflicting.isEmpty)
  }

  @Test("A value in a file equals the same value inline")
  func files() {
    let text = String(repeating: "x", count: 1000)
    let print = MirrorFingerprint(of: Data(text.utf8))
    let inline = FieldBag(["CD_p": .string(text)])
    let moved = FieldBag(["CD_p_ckAsset": .asset(MirrorAsset(fingerprint: print, file: "x"))])
    #expect(inline.agrees(with: moved, on: "p"))
    #expect(inline.asBase.agrees(with: moved, on: "p"))
    #expect(!inline.agrees(with: FieldBag(["CD_p": .string("y")]), on: "p"))
    let empty = FieldBag([
      "CD_p": .string(""), "CD_p_ckAsset": .asset(MirrorAsset(fingerprint: print, file: "")),
    ])
    #expect(empty.agrees(with: inline, on: "p"))
  }
}
