// What the banner of `watershed serve` prints. The API token names the app and is no secret.
export const config = {
  url: 'http://127.0.0.1:8080',
  container: 'iCloud.org.example.app',
  environment: 'development',
  apiToken: '',
}
