// The yardstick: node:http alone, answering the bytes that the gateway answers.
import { createServer } from 'node:http';

const [port, status, headers, body] = process.argv.slice(2) as [string, string, string, string];
const parsedHeaders = JSON.parse(headers) as Record<string, string>;

const server = createServer((req, res) => {
  req.resume();
  req.on('end', () => {
    res.writeHead(Number(status), parsedHeaders);
    res.end(body);
  });
});
server.listen(Number(port), '127.0.0.1', () => process.send?.('listening'));
process.on('SIGTERM', () => process.exit(0));
