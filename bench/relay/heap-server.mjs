// Loaded into the measured service: tells how many bytes of its heap are in use after a garbage collection.
import { createServer } from 'node:http';

createServer((_req, res) => {
  globalThis.gc();
  globalThis.gc();
  res.end(String(process.memoryUsage().heapUsed));
})
  .listen(Number(process.env.HEAP_PORT), '127.0.0.1')
  .unref();
