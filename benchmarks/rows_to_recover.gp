# Plots rows_to_recover.csv of rows_to_recover: docs/plots/rows_to_recover.svg
set datafile separator ','
set terminal svg size 900,380 font 'sans-serif,13' background 'white'
set output 'docs/plots/rows_to_recover.svg'
set multiplot layout 1,2
set datafile missing NaN
set logscale xy
set key top left samplen 2
set ylabel 'rows to 1e-6'
set format y '10^{%L}'

# 174 kd: measured for k = 3, d = 200. 318 d: measured for k = 1, d = 200 (docs/paper.md).
set xlabel 'features d (k = 3)'
set xrange [40:1000]
plot folder.'/rows_to_recover.csv' using ($2==3 ? $1 : NaN):3 with linespoints pt 7 title 'measured', \
     174*3*x with lines dt 2 title '174 kd'

set xlabel 'rank k (d = 200)'
set xrange [0.9:14]
plot folder.'/rows_to_recover.csv' using ($1==200 ? $2 : NaN):3 with linespoints pt 7 title 'measured', \
     174*200*x/log(6*x/(x+2.5)) with lines dt 2 title 'predicted', \
     318*200*x**3 with lines dt 3 title 'k^3 d'
