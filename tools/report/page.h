#pragma once

#include <string_view>

namespace weft::tools {

/// The page's style: light and dark, no fonts but the system's. Curves are coloured by c0 .. c5, chosen to stay apart
/// for colour-blind readers and on both grounds.
inline constexpr std::string_view kPageStyle = R"css(
:root{color-scheme:light dark;--ground:#f7f8fa;--card:#fff;--ink:#1c2330;--soft:#5c6675;--line:#e1e5eb;--limit:#8a5a00;
--bad:#b3261e;--good:#17693a;--c0:#2563c9;--c1:#d4600a;--c2:#12805c;--c3:#9b3fb5;--c4:#b8860b;--c5:#c2255c}
@media (prefers-color-scheme:dark){:root{--ground:#12151b;--card:#1a1f28;--ink:#e4e8ef;--soft:#9aa5b5;--line:#2c3441;
--limit:#e0ad4c;--bad:#ff8a80;--good:#7ddba3;--c0:#6ea8ff;--c1:#ff9d5c;--c2:#4fd1a1;--c3:#d68cf0;--c4:#e6c35c;--c5:#ff85ac}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);font:16px/1.5 system-ui,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
main{max-width:1320px;margin:0 auto;padding:28px 24px 60px}
h1{font-size:30px;margin:0 0 4px}h2{font-size:21px;margin:38px 0 12px}h3{font-size:17px;margin:22px 0 8px}
.sub{color:var(--soft);margin:0 0 20px;overflow-wrap:anywhere}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(190px,1fr));gap:12px}
.card,.plot,.wide{background:var(--card);border:1px solid var(--line);border-radius:10px}
.card{padding:12px 16px}.card b{display:block;font-size:25px;line-height:1.25}.card span{color:var(--soft);font-size:14px}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(520px,100%),1fr));gap:16px}
.plot{margin:0;padding:14px 16px 8px}figcaption{font-weight:600;margin-bottom:4px}
.wide{padding:4px 16px;overflow-x:auto}.empty{color:var(--soft)}
svg{width:100%;height:auto;display:block}svg text{font:12.5px system-ui,"DejaVu Sans",sans-serif;fill:var(--ink)}
svg .tick,svg .axis{fill:var(--soft)}svg .grid{stroke:var(--line)}
svg .limit{stroke:var(--limit);stroke-dasharray:6 4;stroke-width:1.4}svg .limit-label{fill:var(--limit)}
.c0{--c:var(--c0)}.c1{--c:var(--c1)}.c2{--c:var(--c2)}.c3{--c:var(--c3)}.c4{--c:var(--c4)}.c5{--c:var(--c5)}
.swatch,.dot{fill:var(--c)}.curve{fill:none;stroke:var(--c);stroke-width:2.2;stroke-linejoin:round}
.band{fill:var(--c);opacity:.16}.target{fill:transparent}
table{border-collapse:collapse;width:100%;font-size:14.5px;font-variant-numeric:tabular-nums}
th{text-align:left;color:var(--soft);font-weight:600;white-space:nowrap}th,td{padding:6px 12px 6px 0;border-bottom:1px solid var(--line)}
tr:last-child td{border-bottom:0}.n{text-align:right}td{overflow-wrap:anywhere}
.bad{color:var(--bad);font-weight:700}.good{color:var(--good)}
.bars{display:grid;grid-template-columns:minmax(120px,30%) 5em 1fr 7em;gap:5px 12px;align-items:center;padding:12px 0;font-size:14.5px}
.bars .track{height:16px;border-radius:4px;position:relative;background:var(--line)}
.bars i{position:absolute;left:0;top:0;bottom:0;border-radius:4px;background:var(--c0)}.bars i.p99{opacity:.3}
.bars span{overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
#tip{position:fixed;display:none;pointer-events:none;white-space:pre-line;background:var(--ink);color:var(--ground);
padding:7px 11px;border-radius:7px;font-size:13.5px;line-height:1.4;z-index:9;max-width:340px}
)css";

/// Shows the hover texts; without it the page only lacks those.
inline constexpr std::string_view kPageScript = R"js(
const tip=document.getElementById('tip');
document.addEventListener('mousemove',e=>{
 const t=e.target.closest&&e.target.closest('[data-hover]');
 if(!t){tip.style.display='none';return}
 tip.textContent=t.dataset.hover;tip.style.display='block';
 tip.style.left=Math.min(e.clientX+14,innerWidth-tip.offsetWidth-8)+'px';
 tip.style.top=Math.min(e.clientY+14,innerHeight-tip.offsetHeight-8)+'px'});
)js";

}  // namespace weft::tools
