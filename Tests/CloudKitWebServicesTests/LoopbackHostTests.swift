import CloudKitWebServices
import Testing

@Suite("Hosts of this machine")
struct LoopbackHostTests {
  @Test(
    "localhost and loopback addresses are this machine, in every spelling of a URL",
    arguments: [
      "localhost", "LocalHost", "127.0.0.1", "127.0.0.2", "127.255.255.254", "::1", "[::1]",
      "0:0:0:0:0:0:0:1", "[0000::0001]", "::ffff:127.0.0.1", "[::FFFF:127.0.0.1]",
    ]
  )
  func loopback(host: String) {
    #expect(LoopbackHost.contains(host))
  }

  @Test(
    "Other names and addresses are another machine, also those that only look like loopback",
    arguments: [
      "", "[]", "[", "example.org", "localhost.example.org", "localhost.", "[localhost",
      "my-localhost",
      "127.0.0.1.example.org", "127.0.0", "127.1", "0127.0.0.1", "127.0.0.256", "127.0.0.1 ",
      "2130706433",
      "0x7f.0.0.1", "128.0.0.1", "0.0.0.0", "10.0.0.1", "192.0.2.1", "::", "::2", "::1%lo", "[::1",
      "::1]",
      "[[::1]]", "::127.0.0.1", "::ffff:128.0.0.1", "2001:db8::1", "fe80::1",
      "127.0.0.1\0.example.org",
      "localhost\0", "/tmp",
    ]
  )
  func others(host: String) {
    #expect(!LoopbackHost.contains(host))
  }

  @Test("The address of a peer is no name and has no brackets")
  func addresses() {
    #expect(!LoopbackHost.contains(nil))
    #expect(!LoopbackHost.containsAddress(nil))
    #expect(LoopbackHost.containsAddress("127.0.0.1"))
    #expect(LoopbackHost.containsAddress("::1"))
    for text in ["localhost", "[::1]", "[127.0.0.1]", "unix:/tmp/socket"] {
      #expect(!LoopbackHost.containsAddress(text), "\(text)")
    }
  }
}
