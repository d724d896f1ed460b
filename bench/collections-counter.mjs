// Loaded into the measured service: tells how often and for how long its garbage collector has paused it so far.
import { createServer } from 'node:http';
import { constants, PerformanceObserver } from 'node:perf_hooks';

const counts = { scavenges: 0, fullCollections: 0, pauseMs: 0, longestMs: 0 };

new PerformanceObserver((list) => {
  for (const { detail, duration } of list.getEntries()) {
    if (detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR) counts.fullCollections += 1;
    if (detail.kind === constants.NODE_PERFORMANCE_GC_MINOR) counts.scavenges += 1;
    counts.pauseMs += duration;
    counts.longestMs = Math.max(counts.longestMs, duration);
  }
}).observe({ entryTypes: ['gc'] });

createServer((_req, res) => {
  res.end(JSON.stringify(counts));
  counts.longestMs = 0;
})
  .listen(Number(process.env.COUNTER_PORT), '127.0.0.1')
  .unref();
