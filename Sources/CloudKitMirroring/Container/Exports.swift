// An import of the mirroring also imports the two libraries that it connects.
@_exported import OpenCloudKit
@_exported import OpenCoreData
