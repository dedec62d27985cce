// Whoever imports the mirroring has the two libraries that it brings together.
@_exported import OpenCloudKit
@_exported import OpenCoreData
