import ModelGenerator
import Testing

@Suite("Generated accessors have the compiler's symbols")
struct SymbolTests {
  /// What the compiler wrote for the members of these sources, in module "Blog".
  private static let sources = """
    class Author: NSManagedObject {}
    struct Outer { class Inner: NSManagedObject {}; struct Val {}; enum E: Int { case a } }
    typealias Alias = Author
    class Post: NSManagedObject {
      @NSManaged var v1: [String: [Author]]?
      @NSManaged var v2: Any
      @NSManaged var v3: AnyObject?
      @NSManaged var v5: CGFloat
      @NSManaged var v7: Character
      @NSManaged var v8: TimeInterval
      @NSManaged var v9: Alias?
      @NSManaged var v12: IndexSet?
      @NSManaged var v18: Outer.E
      @NSManaged var v20: [[String: Date]: Set<UUID>]?
      @NSManaged var v25: Set<AnyHashable>
      @NSManaged var v27: Foundation.Date?
      @NSManaged var v33: ClosedRange<Int>?
      @NSManaged var v35: UInt
      @NSManaged var v38: Swift.Int16
      @NSManaged var `default`: Int
      @NSManaged var URLString: String
      @NSManaged var isHTMLBody: Bool
      @NSManaged var createdAtDate: Date
      @NSManaged var post_title_post: String
      @NSManaged var postAuthorPost: [Post: Author]
      @NSManaged var x2yBlogPost: String
      @NSManaged var aPost: String
      @NSManaged var postPostBlogBlog: String
      @NSManaged var titleTitleTitle: String
      @NSManaged var ss: [String: [String: String]]
      @NSManaged var implicit: String!
      @NSManaged var first, second: Int32
      @NSManaged private var secret: String?
    }
    class PostPost: Post {
      @NSManaged var post: PostPost; @NSManaged var PostX: Post; @NSManaged var blogPostURLBlog: URL
    }
    class HTTPRequestLog: Post {
      @NSManaged var request: HTTPRequestLog?
      @NSManaged var lastRequestLogHTTP: Set<HTTPRequestLog>
      @NSManaged var foundationDate: Date?
      @NSManaged var setSet: NSSet
    }
    class A1b: Post { @NSManaged var a1b: A1b? }
    class CDUser_Data: Post {
      @NSManaged var userDataCD: CDUser_Data?; @NSManaged var user_Data: [CDUser_Data]
    }
    extension Outer.Inner { @NSManaged var outerInner: Outer.Inner?; @NSManaged var v: [Outer.Val] }
    class Blog: Post { @NSManaged var blog2: Blog?; @NSManaged var Post: Blog }
    """

  @Test(
    "A getter's symbol is spelled as the compiler spells it",
    arguments: [
      "$s4Blog04PostB0C04blogB7URLBlog20FoundationEssentials3URLVvg",
      "$s4Blog04PostB0C0B1XAA0B0Cvg",
      "$s4Blog04PostB0C4postACvg",
      "$s4Blog11CDUser_DataC04userC2CDACSgvg",
      "$s4Blog11CDUser_DataC05user_C0SayACGvg",
      "$s4Blog14HTTPRequestLogC011lastRequestC4HTTPShyACGvg",
      "$s4Blog14HTTPRequestLogC14foundationDate20FoundationEssentials0E0VSgvg",
      "$s4Blog14HTTPRequestLogC6setSet10Foundation5NSSetCvg",
      "$s4Blog14HTTPRequestLogC7requestACSgvg",
      "$s4Blog3A1bC3a1bACSgvg",
      "$s4Blog4PostC010postAuthorB0SDyAcA0D0CGvg",
      "$s4Blog4PostC010titleTitleD0SSvg",
      "$s4Blog4PostC011post_title_C0SSvg",
      "$s4Blog4PostC01aB0SSvg",
      "$s4Blog4PostC03x2yaB0SSvg",
      "$s4Blog4PostC04postbaA0SSvg",
      "$s4Blog4PostC10isHTMLBodySbvg",
      "$s4Blog4PostC13createdAtDate20FoundationEssentials0E0Vvg",
      "$s4Blog4PostC2v1SDySSSayAA6AuthorCGGSgvg",
      "$s4Blog4PostC2v2ypvg",
      "$s4Blog4PostC2v3yXlSgvg",
      "$s4Blog4PostC2v510Foundation7CGFloatVvg",
      "$s4Blog4PostC2v7SJvg",
      "$s4Blog4PostC2v8Sdvg",
      "$s4Blog4PostC2v9AA6AuthorCSgvg",
      "$s4Blog4PostC3v1210Foundation8IndexSetVSgvg",
      "$s4Blog4PostC3v18AA5OuterV1EOvg",
      "$s4Blog4PostC3v20SDySDySS20FoundationEssentials4DateVGShyAE4UUIDVGGSgvg",
      "$s4Blog4PostC3v25Shys11AnyHashableVGvg",
      "$s4Blog4PostC3v2720FoundationEssentials4DateVSgvg",
      "$s4Blog4PostC3v33SNySiGSgvg",
      "$s4Blog4PostC3v35Suvg",
      "$s4Blog4PostC3v38s5Int16Vvg",
      "$s4Blog4PostC7defaultSivg",
      "$s4Blog4PostC9URLStringSSvg",
      "$s4Blog4PostC2ssSDySSSDyS2SGGvg",
      "$s4Blog4PostC8implicitSSSgvg",
      "$s4Blog4PostC5firsts5Int32Vvg",
      "$s4Blog4PostC6seconds5Int32Vvg",
      "$s4Blog4PostC6secret33_53DEACFD68F4A490D4D7DBB1F3BE196ALLSSSgvg",
      "$s4Blog5OuterV5InnerC05outerC0AESgvg",
      "$s4Blog5OuterV5InnerC1vSayAC3ValVGvg",
      "$s4BlogAAC4PostABvg",
      "$s4BlogAAC5blog2ABSgvg",
    ]
  )
  func getters(symbol: String) {
    let generated = Self.generated
    #expect(generated.contains("@_silgen_name(\"\(symbol)\")"))
    #expect(generated.contains("@_silgen_name(\"\(symbol.dropLast())s\")"))
  }

  /// Classes that are private to their file, and members of their types.
  private static let hiddenSources = """
    private class Hidden: NSManagedObject {
      @NSManaged var title: String
      @NSManaged var other: Hidden?
      @NSManaged var hiddenList: [Hidden]
      @NSManaged private var secret: Int
      class Inner: NSManagedObject { @NSManaged var outer: Hidden? }
      private class Deep: NSManagedObject { @NSManaged var deep: Deep? }
      @NSManaged func addToParts(_ value: Hidden)
    }
    class Seen: NSManagedObject {
      fileprivate class Part: NSManagedObject {
        @NSManaged var seen: Seen?; @NSManaged var part: Part?
      }
      @NSManaged fileprivate var hidden: Hidden?
      @NSManaged fileprivate func addToParts(_ value: Part)
    }
    extension Seen {
      fileprivate final class More: NSManagedObject { @NSManaged var part: Part? }
    }
    private extension Seen {
      final class Most: NSManagedObject { @NSManaged var part: Most? }
    }
    fileprivate enum Space { final class Star: NSManagedObject { @NSManaged var star: Star? } }
    """

  @Test(
    "The symbols of classes that are private to their file are spelled as the compiler spells them",
    arguments: [
      "$s4Blog4SeenC10addToParts33_53DEACFD68F4A490D4D7DBB1F3BE196ALLyyAC4PartAELLCF",
      "$s4Blog4SeenC4More33_53DEACFD68F4A490D4D7DBB1F3BE196ALLC4partAC4PartAELLCSgvg",
      "$s4Blog4SeenC4Most33_53DEACFD68F4A490D4D7DBB1F3BE196ALLC4partAFSgvg",
      "$s4Blog4SeenC4Part33_53DEACFD68F4A490D4D7DBB1F3BE196ALLC4partAFSgvg",
      "$s4Blog4SeenC4Part33_53DEACFD68F4A490D4D7DBB1F3BE196ALLC4seenACSgvg",
      "$s4Blog4SeenC6hidden33_53DEACFD68F4A490D4D7DBB1F3BE196ALLAA6HiddenAELLCSgvg",
      "$s4Blog5Space33_53DEACFD68F4A490D4D7DBB1F3BE196ALLO4StarC4starAFSgvg",
      "$s4Blog6Hidden33_53DEACFD68F4A490D4D7DBB1F3BE196ALLC10addToPartsyyADF",
      "$s4Blog6Hidden33_53DEACFD68F4A490D4D7DBB1F3BE196ALLC10hiddenListSayADGvg",
      "$s4Blog6Hidden33_53DEACFD68F4A490D4D7DBB1F3BE196ALLC4DeepC4deepAFSgvg",
      "$s4Blog6Hidden33_53DEACFD68F4A490D4D7DBB1F3BE196ALLC5InnerC5outerADSgvg",
      "$s4Blog6Hidden33_53DEACFD68F4A490D4D7DBB1F3BE196ALLC5otherADSgvg",
      "$s4Blog6Hidden33_53DEACFD68F4A490D4D7DBB1F3BE196ALLC5titleSSvg",
      "$s4Blog6Hidden33_53DEACFD68F4A490D4D7DBB1F3BE196ALLC6secretSivg",
    ]
  )
  func hidden(symbol: String) {
    let result = ModuleGenerator(
      module: "Blog",
      sources: [SourceFile(path: "a.swift", text: Self.hiddenSources)]
    ).generate()
    #expect(result.errors == [])
    #expect(result.source.contains("@_silgen_name(\"\(symbol)\")"))
    if symbol.hasSuffix("vg") {
      #expect(result.source.contains("@_silgen_name(\"\(symbol.dropLast())s\")"))
    }
  }

  @Test(
    "A method's symbol is spelled as the compiler spells it",
    arguments: [
      ("addToTags(_ value: Author)", "$s4Blog4PostC9addToTagsyyAA6AuthorCF"),
      ("addToTags(_ values: NSSet)", "$s4Blog4PostC9addToTagsyy10Foundation5NSSetCF"),
      (
        "insertIntoTags(_ value: Author, at idx: Int)",
        "$s4Blog4PostC14insertIntoTags_2atyAA6AuthorC_SitF"
      ),
      (
        "replaceTags(at idx: Int, with value: Author)",
        "$s4Blog4PostC11replaceTags2at4withySi_AA6AuthorCtF"
      ),
      (
        "replaceTags(at indexes: NSIndexSet, with values: [Author])",
        "$s4Blog4PostC11replaceTags2at4withy10Foundation10NSIndexSetC_SayAA6AuthorCGtF"
      ),
      ("removeFromItems(at idx: Int)", "$s4Blog4PostC15removeFromItems2atySi_tF"),
      (
        "removeFromItems(at idx: NSIndexSet)",
        "$s4Blog4PostC15removeFromItems2aty10Foundation10NSIndexSetC_tF"
      ),
    ]
  )
  func methods(signature: String, symbol: String) {
    let source =
      "class Author: NSManagedObject {}\nclass Post: NSManagedObject { @NSManaged func \(signature) }"
    let result = ModuleGenerator(
      module: "Blog",
      sources: [SourceFile(path: "a.swift", text: source)]
    ).generate()
    #expect(result.errors == [])
    #expect(result.source.contains("@_silgen_name(\"\(symbol)\")"))
  }

  private static var generated: String {
    let result = ModuleGenerator(
      module: "Blog",
      sources: [SourceFile(path: "a.swift", text: sources)]
    ).generate()
    #expect(result.errors == [])
    return result.source
  }
}
