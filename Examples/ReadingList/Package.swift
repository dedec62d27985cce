// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "reading-list",
  dependencies: [
    // In a package of your own: .package(url: "https://…/watershed", from: "…", traits: [])
    .package(name: "watershed", path: "../..", traits: [])
  ],
  targets: [
    .executableTarget(
      name: "ReadingList",
      dependencies: [.product(name: "CoreData", package: "watershed")],
      plugins: [.plugin(name: "CoreDataModels", package: "watershed")]
    )
  ]
)
