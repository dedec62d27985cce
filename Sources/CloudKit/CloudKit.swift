@_exported import OpenCloudKit
