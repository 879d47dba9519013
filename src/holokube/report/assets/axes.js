// Scales and paths: round numbers for axes, and lines that have no more points than the screen.

const TIME_STEPS_S = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800,
];

function timeTicks(startS, fromS, toS, most) {
  const step = TIME_STEPS_S.find((one) => (toS - fromS) / one <= most) || 1209600;
  const ticks = [];
  // Ticks stand at round times of the run's own clock.
  for (let at = Math.ceil((startS + fromS) / step) * step; at <= startS + toS; at += step) {
    ticks.push({ at: at - startS, text: tickText(at, step) });
  }
  return ticks;
}

function tickText(atS, step) {
  const date = new Date(atS * 1000);
  if (atS % 86400 === 0 && step > 1800) return DAYS[date.getUTCDay()] + " " + date.getUTCDate();
  const time = `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}`;
  return step < 60 ? `${time}:${two(date.getUTCSeconds())}` : time;
}

function valueTicks(highest, most) {
  if (!(highest > 0)) return [0, 1];
  const rough = highest / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((one) => one * power).find((one) => highest / one <= most);
  const ticks = [];
  for (let i = 0; i * step < highest + step * 0.999; i++) ticks.push(i * step);
  return ticks;
}

// Round spans of time: seconds, minutes, hours.
function spanTicks(highest, most) {
  const step = TIME_STEPS_S.find((one) => highest / one <= most);
  if (highest < 5 || !step) return valueTicks(highest, most);
  return Array.from({ length: Math.ceil(highest / step) + 1 }, (_, i) => i * step);
}

// The last sample at or before a time; -1 before the first.
function sampleAt(times, at) {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] <= at) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

// The path of a line between two times. Where several samples share a column of pixels, their first, lowest, highest
// and last are drawn: spikes survive. `steps` holds each value until the next sample.
function linePath(times, values, fromS, toS, width, height, top, steps) {
  const x = (at) => ((at - fromS) / (toS - fromS)) * width;
  const y = (value) => height - (value / top) * height;
  const first = Math.max(0, sampleAt(times, fromS));
  const last = Math.min(times.length - 1, sampleAt(times, toS) + 1);
  let path = "";
  let pen = false;
  let py = 0;
  const to = (px, value) => {
    if (!pen) path += `M${px.toFixed(1)} ${y(value).toFixed(1)}`;
    else if (steps) path += `H${px.toFixed(1)}${py === value ? "" : "V" + y(value).toFixed(1)}`;
    else path += `L${px.toFixed(1)} ${y(value).toFixed(1)}`;
    pen = true;
    py = value;
  };
  for (let i = first; i <= last;) {
    const column = Math.floor(x(times[i]));
    let end = i;
    let low = i;
    let high = i;
    while (end + 1 <= last && Math.floor(x(times[end + 1])) === column) {
      end += 1;
      if (values[end] < values[low]) low = end;
      if (values[end] > values[high]) high = end;
    }
    const chosen = [...new Set([i, Math.min(low, high), Math.max(low, high), end])].sort((a, b) => a - b);
    for (const one of chosen) {
      if (Number.isFinite(values[one])) to(x(times[one]), values[one]);
      else pen = false;
    }
    i = end + 1;
  }
  return path;
}
